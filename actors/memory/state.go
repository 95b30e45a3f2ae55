package memory

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"homeagent/actors/kit"
	"homeagent/memory/recall"
	"homeagent/memory/store"
	"homeagent/messages"
)

const (
	// maxVisits is how many questions are with the engine at the same time.
	maxVisits = 4
	// wordsIdle is how long the dictionary stays without use.
	wordsIdle = 10 * time.Minute
	// registerAgain is how long the registry is left alone after it did not take the tools.
	registerAgain = time.Second
	// graphLimit is how long the graph may take for one call.
	graphLimit = 25 * time.Second
)

// Params of a machine.
type Params struct {
	// Tools is the registry of tools, Graph the writer of facts.
	Tools, Graph *messages.Address
	// Words says that there is a dictionary.
	Words bool
}

// job is one request.
type job struct {
	event kit.Event
	// visit is what the engine is asked; nil for one that the graph works on.
	visit kit.Effect
}

type state struct {
	p       Params
	self    *messages.Address
	last    uint64
	waiting []uint64
	jobs    map[uint64]*job
	visits  int
	calls   map[string]uint64 // call id to job
	words   wordsState
	asked   uint64
	none    uint64
	failed  uint64
	out     []kit.Effect
}

type wordsState int

const (
	wordsAbsent wordsState = iota
	wordsComing
	wordsHere
)

// New makes the machine of one incarnation.
func New(p Params) kit.Machine {
	return &state{p: p, jobs: map[uint64]*job{}, calls: map[string]uint64{}}
}

// Step implements kit.Machine.
func (s *state) Step(now time.Time, e kit.Event) []kit.Effect {
	s.out = nil
	switch m := e.Msg.(type) {
	case kit.Started:
		s.self = m.Self
		s.out = append(s.out, kit.Ready{}, kit.State{Word: "running", Summary: s.summary()})
		s.register()
	case register, kit.Restarted:
		s.register()
	case kit.Fault:
		s.onFault(m)
	case *messages.Recall:
		s.onRecall(e, m, now)
	case *messages.MemoryQuery:
		s.enqueue(e, func(id uint64) kit.Effect { return browse{Job: id, Query: m} })
	case *messages.CallTool:
		s.onCall(e, m, now)
	case *messages.CancelTool:
		s.onCancel(m)
	case *messages.CommitFactsResult:
		s.onCommitted(e.Corr, m)
	case found:
		s.onFound(m)
	case browsed:
		s.onBrowsed(m)
	case late:
		s.onGraphFailed(m.Job, &messages.ToolError{
			Reason: "unknown_outcome", Detail: "The facts were handed over, but it is not known yet whether they are stored.",
			Hint: "Sending them again is safe.",
		})
	case *messages.Error:
		s.onError(e.Corr, m)
	case *messages.Busy:
		s.onError(e.Corr, &messages.Error{Code: "busy", Message: "It has too much to do."})
	case wordsLoaded:
		s.onWordsLoaded(m)
	case tick:
		s.out = append(s.out, dropWords{Since: now.Add(-wordsIdle)})
	case wordsChecked:
		s.onWordsChecked(m)
	case *messages.Drain:
		s.out = append(s.out, e.Reply(&messages.Ok{}))
	}
	s.next()
	return s.out
}

func (s *state) register() {
	if s.p.Tools != nil {
		s.out = append(s.out, kit.Send{To: s.p.Tools, Corr: corrRegister, Msg: &messages.RegisterTools{Owner: s.self, Tools: toolDefs()}})
	}
}

const (
	corrRegister = "register"
	corrCommit   = "commit/"
)

// enqueue takes a request that the engine is to answer.
func (s *state) enqueue(e kit.Event, visit func(id uint64) kit.Effect) uint64 {
	s.last++
	s.jobs[s.last] = &job{event: e, visit: visit(s.last)}
	s.waiting = append(s.waiting, s.last)
	return s.last
}

// next hands what waits to the engine.
func (s *state) next() {
	for s.visits < maxVisits && len(s.waiting) > 0 {
		id := s.waiting[0]
		s.waiting = s.waiting[1:]
		j, ok := s.jobs[id]
		if !ok {
			continue // cancelled while it waited
		}
		s.visits++
		s.out = append(s.out, j.visit)
	}
}

func (s *state) onRecall(e kit.Event, m *messages.Recall, now time.Time) {
	if us := m.GetNowUs(); us != 0 {
		now = time.UnixMicro(us).UTC()
	}
	q := recall.Question{Text: m.GetText(), Agent: m.GetAgent(), Limit: int(m.GetLimit()), Exclude: m.GetExclude(), Now: now}
	s.enqueue(e, func(id uint64) kit.Effect { return lookup{Job: id, Question: q} })
	s.needWords(m.GetText())
}

func (s *state) onCall(e kit.Event, m *messages.CallTool, now time.Time) {
	id := m.GetCall().GetCallId()
	if _, ok := s.calls[id]; ok {
		s.out = append(s.out, e.Reply(fail(m, &messages.ToolError{Reason: "failed", Detail: "This call is running already."})))
		return
	}
	switch m.GetCall().GetName() {
	case toolRecall:
		q, err := question(m, now)
		if err != nil {
			s.out = append(s.out, e.Reply(fail(m, err)))
			return
		}
		s.calls[id] = s.enqueue(e, func(job uint64) kit.Effect { return lookup{Job: job, Question: q} })
		s.needWords(q.Text)
	case toolCommit:
		b, err := batch(m, now)
		if err != nil {
			s.out = append(s.out, e.Reply(fail(m, err)))
			return
		}
		s.last++
		s.jobs[s.last] = &job{event: e}
		s.calls[id] = s.last
		s.out = append(s.out,
			kit.Send{To: s.p.Graph, Corr: corrCommit + strconv.FormatUint(s.last, 10), Msg: b},
			kit.After{Key: lateKey(s.last), D: graphLimit, Msg: late{s.last}})
	default:
		s.out = append(s.out, e.Reply(fail(m, &messages.ToolError{
			Reason: "not_found", Detail: "Memory has no such tool.", Hint: "It has " + toolRecall + " and " + toolCommit + ".",
		})))
	}
}

func lateKey(job uint64) string { return fmt.Sprint("late/", job) }

// take removes a job that is being answered; nil when it is gone.
func (s *state) take(id uint64) *job {
	j := s.jobs[id]
	delete(s.jobs, id)
	if j != nil {
		if c, ok := j.event.Msg.(*messages.CallTool); ok {
			delete(s.calls, c.GetCall().GetCallId())
		}
	}
	return j
}

func (s *state) onCancel(m *messages.CancelTool) {
	id, ok := s.calls[m.GetCallId()]
	if !ok {
		return
	}
	j := s.take(id)
	c := j.event.Msg.(*messages.CallTool)
	switch j.visit.(type) {
	case nil:
		s.out = append(s.out, kit.CancelAfter{Key: lateKey(id)})
	default:
		if !s.forget(id) {
			s.visits--
			s.out = append(s.out, kit.CancelWork{Key: workKey(id)})
		}
	}
	s.out = append(s.out, j.event.Reply(fail(c, &messages.ToolError{Reason: "cancelled", Detail: "The call was cancelled: " + m.GetReason() + "."})))
}

// forget takes a job out of the queue; false when it is with the engine.
func (s *state) forget(id uint64) bool {
	for i, w := range s.waiting {
		if w == id {
			s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
			return true
		}
	}
	return false
}

func (s *state) onFound(m found) {
	s.visits--
	j := s.take(m.Job)
	if j == nil {
		panic("memory: a result without a request")
	}
	s.asked++
	if m.Answer.None {
		s.none++
	}
	if m.Err != nil {
		s.noteFailure(m.Err)
	}
	switch r := j.event.Msg.(type) {
	case *messages.Recall:
		res := &messages.RecallResult{Items: items(m.Answer), None: m.Answer.None}
		if m.Err != nil {
			res = &messages.RecallResult{Error: fault(m.Err)}
		}
		s.out = append(s.out, j.event.Reply(res))
	case *messages.CallTool:
		res := succeed(r, recalled(m.Answer), taintOf(m.Answer))
		if m.Err != nil {
			res = fail(r, &messages.ToolError{Reason: "failed", Detail: fault(m.Err).GetMessage()})
		}
		s.out = append(s.out, j.event.Reply(res))
	}
	s.out = append(s.out, kit.State{Word: "running", Summary: s.summary()})
}

// taintOf is the worst taint among what was brought up.
func taintOf(a recall.Answer) messages.Taint {
	for _, it := range a.Items {
		if it.GetTaint() == messages.Taint_TAINT_FOREIGN {
			return messages.Taint_TAINT_FOREIGN
		}
	}
	return messages.Taint_TAINT_RECALLED
}

// viaContext marks items that the asker has before it already.
const viaContext = "context"

// items lists what is new to the asker, and behind it what it excluded, marked: a prompt need not repeat that, but an
// asker without a model answers from it.
func items(a recall.Answer) []*messages.RecalledItem {
	for _, k := range a.Known {
		k.Via = viaContext
	}
	return append(a.Items, a.Known...)
}

func (s *state) onBrowsed(m browsed) {
	s.visits--
	j := s.take(m.Job)
	if j == nil {
		panic("memory: a result without a request")
	}
	if m.Err != nil {
		s.noteFailure(m.Err)
		m.Answer = &messages.MemoryAnswer{Error: fault(m.Err)}
	}
	s.out = append(s.out, j.event.Reply(m.Answer))
}

func (s *state) noteFailure(err error) {
	s.failed++
	s.out = append(s.out, kit.Log{Level: kit.Warn, Text: "memory could not be searched", Attrs: []any{"error", err.Error()}})
}

func fault(err error) *messages.Error {
	return &messages.Error{Code: store.Code(err), Message: "Memory could not be searched.", Hint: "See the log; `homed doctor` checks the store."}
}

func (s *state) onCommitted(corr string, m *messages.CommitFactsResult) {
	id, ok := commitJob(corr)
	if !ok {
		return
	}
	if e := m.GetError(); e != nil {
		s.onGraphFailed(id, &messages.ToolError{Reason: "failed", Detail: e.GetMessage(), Hint: e.GetHint()})
		return
	}
	j := s.take(id)
	if j == nil {
		return // cancelled or given up
	}
	c := j.event.Msg.(*messages.CallTool)
	s.out = append(s.out, kit.CancelAfter{Key: lateKey(id)},
		j.event.Reply(succeed(c, committed(c.GetCall().GetCallId(), m), messages.Taint_TAINT_TRUSTED)))
}

func commitJob(corr string) (uint64, bool) {
	n, ok := strings.CutPrefix(corr, corrCommit)
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseUint(n, 10, 64)
	return id, err == nil
}

// onGraphFailed answers a commit that came to nothing.
func (s *state) onGraphFailed(id uint64, e *messages.ToolError) {
	j := s.take(id)
	if j == nil {
		return
	}
	s.failed++
	s.out = append(s.out, kit.CancelAfter{Key: lateKey(id)}, j.event.Reply(fail(j.event.Msg.(*messages.CallTool), e)))
}

// onFault is told of a message that could not be delivered.
func (s *state) onFault(f kit.Fault) {
	if send, ok := f.Effect.(kit.Send); ok {
		s.onError(send.Corr, f.Err)
	}
}

// onError handles an error in place of an answer.
func (s *state) onError(corr string, e *messages.Error) {
	if corr == corrRegister {
		s.out = append(s.out, kit.After{Key: corrRegister, D: registerAgain, Msg: register{}})
		return
	}
	if id, ok := commitJob(corr); ok {
		s.onGraphFailed(id, &messages.ToolError{Reason: "failed", Detail: "The facts could not be handed over: " + e.GetMessage(), Hint: "Try again later."})
	}
}

// needWords has the dictionary loaded once there is Chinese text to cut.
func (s *state) needWords(text string) {
	if !s.p.Words || s.words != wordsAbsent || strings.IndexFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) }) < 0 {
		return
	}
	s.words = wordsComing
	s.out = append(s.out, loadWords{})
}

func (s *state) onWordsLoaded(m wordsLoaded) {
	if m.Err != nil {
		// It stays away until the next start: it would fail again.
		s.out = append(s.out, kit.Log{Level: kit.Error, Text: "the dictionary was not loaded", Attrs: []any{"error", m.Err.Error()}})
		return
	}
	s.words = wordsHere
	s.out = append(s.out, kit.After{Key: "words", D: wordsIdle, Msg: tick{}})
}

func (s *state) onWordsChecked(m wordsChecked) {
	if m.Dropped {
		s.words = wordsAbsent
		return
	}
	s.out = append(s.out, kit.After{Key: "words", D: wordsIdle, Msg: tick{}})
}

func (s *state) summary() string {
	return fmt.Sprintf("%d questions, %d without a memory, %d failed", s.asked, s.none, s.failed)
}

// Show implements kit.Shower.
func (s *state) Show() any {
	return map[string]any{
		"waiting": len(s.waiting), "with_engine": s.visits, "calls": len(s.calls), "asked": s.asked, "none": s.none,
		"failed": s.failed, "dictionary": s.words == wordsHere,
	}
}
