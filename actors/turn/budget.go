package turn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// What a prompt may hold is a ceiling, never something to fill. Of what the fixed parts leave (rules, facts, tools, the
// input, the turn's own tail) recalled memory gets at most a third and past events the rest. It is measured before every
// request: the tail grows. Then the oldest events go first, then recalled memory, and only when nothing else is left the
// results of the turn's own calls are shortened, the oldest first. Calls and results stay paired: no message of the tail
// is dropped. What is left out of a prompt stays in the store and can be recalled.

// gauge remembers what messages are worth in tokens. Messages are frozen, so that they are known by their place.
type gauge map[*messages.ChatMessage]int

func (g gauge) of(msgs ...*messages.ChatMessage) int {
	sum := 0
	for _, msg := range msgs {
		n, known := g[msg]
		if !known {
			n = messageTokens(msg)
			g[msg] = n
		}
		sum += n
	}
	return sum
}

// fixed is what a request holds beside the prefix.
func (m *machine) fixed() int { return m.toolSize() + m.sizes.of(m.tail...) }

// toolSize is what the tools of the request are worth. Lists come anew for each request and mostly bring the same tools.
func (m *machine) toolSize() int {
	n := 0
	for _, d := range m.list {
		key := sizedTool{d.GetName(), len(d.GetDescription()), len(d.GetParametersJson())}
		size, known := m.toolSizes[key]
		if !known {
			size = toolTokens(d)
			m.toolSizes[key] = size
		}
		n += size
	}
	return n
}

// sizedTool tells definitions apart, as far as their size goes.
type sizedTool struct {
	name              string
	description, form int
}

// mostTotal is a bound of total that takes little time: most prompts are far from their budget.
func (m *machine) mostTotal() int {
	return m.toolSize() + mostTokens(m.tail...) + mostTokens(m.prefix...)
}

// total is what the request about to be made holds.
func (m *machine) total() int { return m.fixed() + m.sizes.of(m.prefix...) }

// layout builds the prefix within the budget.
func (m *machine) layout() []*messages.ChatMessage {
	rules := textMessage(messages.Role_ROLE_SYSTEM, houseRules(&m.set, m.start.GetAgent(), m.input))
	now := textMessage(messages.Role_ROLE_SYSTEM, facts(&m.set, m.input, m.window))
	input := &messages.ChatMessage{Role: messages.Role_ROLE_USER, Parts: m.input.GetParts()}
	events := m.pastMessages()
	memory := textMessage(messages.Role_ROLE_SYSTEM, memoryText(&m.set, m.recalled, m.asides, m.budget))
	free := m.budget - m.toolSize() - mostTokens(m.tail...) - mostTokens(rules, now, input)
	if most := mostTokens(memory); most > free/3 || mostTokens(events...) > free-most {
		free = m.budget - m.fixed() - m.sizes.of(rules, now, input)
		memory = textMessage(messages.Role_ROLE_SYSTEM, memoryText(&m.set, m.recalled, m.asides, free/3))
		events = m.latest(events, free-m.sizes.of(memory))
	}
	out := []*messages.ChatMessage{rules, now}
	if plainText(memory.GetParts()) != strings.TrimRight(memoryHead, "\n") {
		out = append(out, memory)
	}
	return append(append(out, events...), input)
}

func (m *machine) pastMessages() []*messages.ChatMessage {
	var all []*messages.ChatMessage
	for _, e := range m.window {
		if msg := pastMessage(e); msg != nil {
			all = append(all, msg)
		}
	}
	return all
}

// latest is the end of the conversation, as far as it fits. It does not begin with an answer.
func (m *machine) latest(all []*messages.ChatMessage, room int) []*messages.ChatMessage {
	from := len(all)
	for from > 0 && room >= m.sizes.of(all[from-1]) {
		from--
		room -= m.sizes.of(all[from])
	}
	if from > 0 {
		for from < len(all) && all[from].GetRole() == messages.Role_ROLE_ASSISTANT {
			from++
		}
	}
	return all[from:]
}

// fit takes out of the request what it must to be within the budget, and returns what the request holds then. When it has
// to cut, it cuts to three quarters: cutting a little in each round would spoil the vendor's prefix cache each time.
func (m *machine) fit() int {
	if most := m.mostTotal(); most <= m.budget {
		return most
	}
	total := m.total()
	if total <= m.budget {
		return total
	}
	goal := m.budget - m.budget/4
	m.prefix, total = m.dropEvents(total, goal)
	if total > m.budget {
		m.prefix = slices.DeleteFunc(slices.Clone(m.prefix), isMemory)
		total = m.total()
	}
	for _, head := range []int{longHead, shortHead} {
		if total > m.budget {
			total = m.shortenResults(total, goal, head)
		}
	}
	return total
}

// dropEvents drops the oldest past messages. System messages and the last message, the input, stay.
func (m *machine) dropEvents(total, goal int) ([]*messages.ChatMessage, int) {
	first := slices.IndexFunc(m.prefix, func(c *messages.ChatMessage) bool { return c.GetRole() != messages.Role_ROLE_SYSTEM })
	last := len(m.prefix) - 1
	if first < 0 || first >= last {
		return m.prefix, total
	}
	cut := first
	for cut < last && (total > goal || m.prefix[cut].GetRole() != messages.Role_ROLE_USER) {
		total -= m.sizes.of(m.prefix[cut]) // past the goal: an answer without its question
		cut++
	}
	return slices.Concat(m.prefix[:first], m.prefix[cut:]), total
}

func isMemory(c *messages.ChatMessage) bool {
	return c.GetRole() == messages.Role_ROLE_SYSTEM && strings.HasPrefix(plainText(c.GetParts()), memoryHead)
}

// How many characters of a result are left when it is shortened, first and when that is not enough.
const (
	longHead  = 1000
	shortHead = 160
)

// shortenResults leaves of the oldest results of the turn their heads.
func (m *machine) shortenResults(total, goal, head int) int {
	for i, msg := range m.tail {
		if total <= goal {
			break
		}
		short := shortened(msg, head)
		if short == nil {
			continue
		}
		total += m.sizes.of(short) - m.sizes.of(msg)
		m.tail[i] = short
	}
	return total
}

// shortened is a tool's result with the head of its text; nil when that is no less.
func shortened(msg *messages.ChatMessage, head int) *messages.ChatMessage {
	if msg.GetRole() != messages.Role_ROLE_TOOL {
		return nil
	}
	text := plainText(msg.GetParts())
	from := []rune(text)
	if i := strings.Index(text, shortMark); i >= 0 {
		from = []rune(text[:i]) // shortened before
	}
	media := len(msg.GetParts()) - 1
	if len(from) <= head && media <= 0 {
		return nil
	}
	note := ""
	if media > 0 {
		note = " and without its media"
	}
	whole := len([]rune(text))
	if len(from) != len([]rune(text)) {
		whole = wholeLength(text)
	}
	out := proto.CloneOf(msg)
	out.Parts = []*messages.Part{{Content: &messages.Part_Text{Text: fmt.Sprintf(
		"%s%s the first %d of %d characters of this result%s. The call was made and is done; if more of it is needed, get just that part with a call that only reads.]",
		string(from[:min(head, len(from))]), shortMark, min(head, len(from)), whole, note,
	)}}}
	return out
}

// shortMark begins the note behind a result that was shortened.
const shortMark = "\n[Shortened to make room:"

// wholeLength is how long a result was that was shortened before.
func wholeLength(text string) int {
	_, note, _ := strings.Cut(text, shortMark)
	var of, n int
	if _, err := fmt.Sscanf(note, " the first %d of %d", &of, &n); err != nil {
		return len([]rune(text))
	}
	return n
}

// errTooLong says in numbers why no request can be made.
func (m *machine) errTooLong(total int, reason string) *messages.Error {
	tools := m.toolSize()
	input := textTokens(plainText(m.input.GetParts()))
	return &messages.Error{
		Code: kindCode(messages.ErrorKind_ERROR_KIND_CONTEXT_OVERFLOW),
		Message: fmt.Sprintf("%s About %d tokens are left of the prompt, of which %d are the message itself, %d the tools and %d what this turn has said and done; nothing more of it can be left out.",
			reason, total, input, tools, m.sizes.of(m.tail...)),
		Hint: "Ask for less at once, or use a model that can read more; core.llm.sources.<name>.context_window tells how much that is.",
		Details: map[string]string{
			"prompt_tokens": strconv.Itoa(total), "budget_tokens": strconv.Itoa(m.budget), "window_tokens": strconv.Itoa(m.set.Window),
			"input_tokens": strconv.Itoa(input), "tool_tokens": strconv.Itoa(tools), "tail_tokens": strconv.Itoa(m.sizes.of(m.tail...)),
			"messages": strconv.Itoa(len(m.prefix) + len(m.tail)), "recoveries": strconv.Itoa(m.overflows),
		},
	}
}

// onOverflow makes the prompt shorter than the one that the vendor could not read, by a tenth at least, and tries again; at
// most maxOverflows times in a turn.
func (m *machine) onOverflow(err *messages.Error) {
	before := m.total()
	if m.overflows < maxOverflows {
		m.overflows++
		m.budget = min(m.budget, before) / 2
		if m.fit(); m.total() <= before-before/10 {
			m.publishError(err)
			m.become(prompting)
			return
		}
	}
	m.fail(m.errTooLong(m.total(), "The model cannot read a prompt of this length."))
}
