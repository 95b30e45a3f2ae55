package providers

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// IDForm is the form that a vendor's servers want ids of calls to have.
type IDForm string

// The forms.
const (
	// IDAny takes an id as another vendor made it.
	IDAny IDForm = "any"
	// IDPlain wants 1 to 64 letters, digits, hyphens and underscores, and no id
	// twice in a request.
	IDPlain IDForm = "plain"
	// IDNine wants nine letters or digits, and no id twice.
	IDNine IDForm = "nine"
)

// ParseIDForm reads a form; empty is IDAny.
func ParseIDForm(text string) (IDForm, error) {
	switch f := IDForm(text); f {
	case "":
		return IDAny, nil
	case IDAny, IDPlain, IDNine:
		return f, nil
	}
	return "", fmt.Errorf("%q is unknown; legal are any, plain, nine", text)
}

var (
	plainID   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	nineID    = regexp.MustCompile(`^[A-Za-z0-9]{9}$`)
	legalName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
)

func (f IDForm) takes(id string) bool {
	switch f {
	case IDPlain:
		return plainID.MatchString(id)
	case IDNine:
		return nineID.MatchString(id)
	default:
		return id != ""
	}
}

// derive makes an id of this form from a seed.
func (f IDForm) derive(seed string) string {
	sum := hex.EncodeToString(hash(seed))
	if f == IDNine {
		return sum[:9]
	}
	return "call_" + sum[:20]
}

func hash(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// Names maps the names of tools that a vendor was told to those that they have
// here; names that are the same are left out.
type Names map[string]string

// Back gives a tool's own name.
func (n Names) Back(name string) string {
	if own, ok := n[name]; ok {
		return own
	}
	return name
}

// Fit gives the request as a source of an adapter can take it: the history
// repaired (see Repair), ids of calls in the form that the vendor takes and
// unique where it insists, names of tools legal for every vendor, tools in the
// order of their names, because an order that changes costs the vendor's cache,
// and a schema in words where the adapter cannot ask for it. The request given
// is not changed. What is fitted twice stays the same.
func Fit(q *messages.CompletionRequest, source string, info Info) (*messages.CompletionRequest, Names) {
	out := &messages.CompletionRequest{
		CallId: q.CallId, TaskId: q.TaskId, Agent: q.Agent, MaxTokens: q.MaxTokens, Temperature: q.Temperature,
		Recalled: q.Recalled, MemoryNone: q.MemoryNone, Question: q.Question, Source: q.Source, ToolChoice: q.ToolChoice,
		OutputSchemaJson: q.OutputSchemaJson, Thinking: q.Thinking,
		Messages: Repair(q.Messages, source),
	}
	out.Tools = ordered(q.Tools)
	fitIDs(out.Messages, info.ToolIDs)
	names := fitNames(out)
	if len(q.OutputSchemaJson) > 0 && !info.Structured && !info.Local {
		out.Messages = slices.Insert(out.Messages, firstOther(out.Messages), &messages.ChatMessage{
			Role:  messages.Role_ROLE_SYSTEM,
			Parts: []*messages.Part{{Content: &messages.Part_Text{Text: inWords + string(q.OutputSchemaJson)}}},
		})
		out.OutputSchemaJson = nil
	}
	return out, names
}

// inWords asks for what the adapter has no field for.
const inWords = "Answer with one JSON value that follows this JSON schema, and with nothing else: "

// firstOther is where the system messages at the beginning end.
func firstOther(ms []*messages.ChatMessage) int {
	i := slices.IndexFunc(ms, func(m *messages.ChatMessage) bool { return m.GetRole() != messages.Role_ROLE_SYSTEM })
	if i < 0 {
		return len(ms)
	}
	return i
}

// ordered sorts tools by name and drops all but the first of a name.
func ordered(tools []*messages.ToolDef) []*messages.ToolDef {
	out := slices.Clone(tools)
	slices.SortStableFunc(out, func(a, b *messages.ToolDef) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return slices.CompactFunc(out, func(a, b *messages.ToolDef) bool { return a.GetName() == b.GetName() })
}

// ownAt makes message i of the list one that may be changed.
func ownAt(ms []*messages.ChatMessage, i int) *messages.ChatMessage {
	ms[i] = proto.Clone(ms[i]).(*messages.ChatMessage)
	return ms[i]
}

// fitIDs rewrites ids that the vendor would refuse, in calls and their results;
// the history is repaired already.
func fitIDs(ms []*messages.ChatMessage, form IDForm) {
	used := make(map[string]bool)
	for i := 0; i < len(ms); i++ {
		calls := ms[i].GetCalls()
		if len(calls) == 0 {
			continue
		}
		changed := make([]string, len(calls))
		some := false
		for j, c := range calls {
			id := c.GetVendorId()
			if !form.takes(id) || used[id] && (form != IDAny || c.GetMadeId()) {
				seed := cmp.Or(c.GetCallId(), id+" "+strconv.Itoa(i)+" "+strconv.Itoa(j))
				for id = form.derive(seed); used[id]; id = form.derive(seed) {
					seed += "+"
				}
			}
			used[id] = true
			changed[j], some = id, some || id != c.GetVendorId()
		}
		if !some {
			continue
		}
		m := ownAt(ms, i)
		for j, id := range changed {
			// Results follow in the order of the calls.
			m.Calls[j].VendorId = id
			ownAt(ms, i+1+j).VendorCallId = id
		}
	}
}

// fitNames makes the names of tools legal everywhere in the request.
func fitNames(q *messages.CompletionRequest) Names {
	taken := make(map[string]bool)
	var odd []string
	note := func(name string) {
		if legalName.MatchString(name) {
			taken[name] = true
		} else if name != "" && !slices.Contains(odd, name) {
			odd = append(odd, name)
		}
	}
	for _, t := range q.Tools {
		note(t.GetName())
	}
	for _, m := range q.Messages {
		for _, c := range m.GetCalls() {
			note(c.GetName())
		}
	}
	if len(odd) == 0 {
		return nil
	}
	slices.Sort(odd)
	legal, back := make(map[string]string), make(Names)
	for _, name := range odd {
		fitted := legalise(name)
		if taken[fitted] || len(fitted) > maxName {
			sum := "_" + hex.EncodeToString(hash(name))[:8]
			fitted = fitted[:min(len(fitted), maxName-len(sum))] + sum
		}
		taken[fitted] = true
		legal[name], back[fitted] = fitted, name
	}
	rename(q, legal)
	return back
}

const maxName = 64

// legalise replaces what no vendor takes in a name; its length is left.
func legalise(name string) string {
	out := []byte(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name))
	if c := out[0]; c >= '0' && c <= '9' || c == '-' {
		out = append([]byte{'_'}, out...)
	}
	return string(out)
}

func rename(q *messages.CompletionRequest, legal map[string]string) {
	for i, t := range q.Tools {
		if name, ok := legal[t.GetName()]; ok {
			q.Tools[i] = proto.Clone(t).(*messages.ToolDef)
			q.Tools[i].Name = name
		}
	}
	if name, ok := strings.CutPrefix(q.ToolChoice, "tool:"); ok && legal[name] != "" {
		q.ToolChoice = "tool:" + legal[name]
	}
	for i, m := range q.Messages {
		change := legal[m.GetToolName()] != ""
		for _, c := range m.GetCalls() {
			change = change || legal[c.GetName()] != ""
		}
		if !change {
			continue
		}
		m = ownAt(q.Messages, i)
		m.ToolName = cmp.Or(legal[m.ToolName], m.ToolName)
		for _, c := range m.GetCalls() {
			c.Name = cmp.Or(legal[c.Name], c.Name)
		}
	}
}
