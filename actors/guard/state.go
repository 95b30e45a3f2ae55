package guard

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/memory/approvals"
	"homeagent/messages"
)

const (
	// maxCall is the most bytes of a call that a person is asked about: the whole of it is shown.
	maxCall = 256 << 10
	// maxNote is the most bytes of what a person says to a decision.
	maxNote = 2000
	// keepDecided is how many decided approvals are kept at most.
	keepDecided = 2000
	// maxLater is how many requests wait for the disk at most; further ones are answered with Busy.
	maxLater = 1024
	// keepReleased is how many tasks are remembered whose approvals were released.
	keepReleased = 1024
	// tickEvery is the longest pause between two looks at what has expired: clocks jump.
	tickEvery = 10 * time.Minute
	// againAfter is the pause before a write that ledger did not take is handed over again.
	againAfter = time.Second
	// tellAfter is the pause before a scheduler that was not there is told again; tellTimes is how often that is done.
	tellAfter = 2 * time.Second
	tellTimes = 150
)

// entry is one approval. A busy one has a change under way, and whoever asks about it waits for that.
type entry struct {
	a    *messages.Approval
	busy bool
}

// change is one approval as it is to be, or one token; a nil next forgets the approval of id.
type change struct {
	id    string
	next  *messages.Approval
	token *tokenChange
}

type machine struct {
	ledger *messages.Address
	values kit.Values
	now    time.Time
	out    []kit.Effect

	loaded, ready bool
	entries       map[string]*entry          // by approval id
	calls         map[string][]string        // call id to approval ids
	tasks         map[string]map[string]bool // task to approval ids
	waiting       map[string]*entry          // those that wait for a person, or are about to
	released      []string                   // tasks, the oldest first
	tokens        map[string]*token          // by name

	changes []change    // to be written
	flight  []change    // being written
	corr    string      // of the write under way
	writes  uint64      // made so far
	later   []kit.Event // wait for changes, or for the start

	untold  map[string]told // tasks whose scheduler was not reached
	asked   map[string]bool // tasks that ledger was asked about
	next    time.Time       // of the tick
	shown   kit.State
	unknown map[string]bool
}

// told is a scheduler that was not reached. It is told again; when that is not refused either, it is forgotten.
type told struct {
	times int
	sent  bool
}

// New makes the machine of one incarnation; ledger writes what it decides.
func New(ledger *messages.Address) kit.Machine {
	return &machine{
		ledger: ledger, entries: map[string]*entry{}, calls: map[string][]string{}, tasks: map[string]map[string]bool{},
		waiting: map[string]*entry{}, tokens: map[string]*token{}, untold: map[string]told{}, asked: map[string]bool{}, unknown: map[string]bool{},
	}
}

// Step implements kit.Machine.
func (m *machine) Step(now time.Time, e kit.Event) []kit.Effect {
	m.now, m.out = now, nil
	m.handle(e)
	m.flush()
	m.schedule()
	m.show()
	return m.out
}

func (m *machine) handle(e kit.Event) {
	switch msg := e.Msg.(type) {
	case kit.Started:
		m.add(load{}, m.subscribe())
	case kit.Restarted:
		m.onRestarted(msg)
	case kit.Stopping:
	case kit.Fault:
		m.onFault(msg)
	case *messages.ConfigChanged:
		m.values.Take(msg)
		m.begin()
	case loaded:
		m.onLoaded(msg)
	case *messages.CheckCalls, *messages.DecideApproval, *messages.ReleaseApprovals,
		*messages.AddToken, *messages.RemoveToken, *messages.ListTokens:
		m.onAsk(e)
	case *messages.ListApprovals:
		m.add(read{Ask: kit.Event{From: e.From, Corr: e.Corr}, Query: msg})
	case found:
		m.onFound(msg)
	case *messages.LedgerDone:
		m.onWritten(e.Corr, msg.GetError())
	case *messages.TaskStatus:
		m.onTask(e.Corr, msg)
	case *messages.Error:
		m.onError(e.Corr, msg)
	case *messages.Busy:
		m.onBusy(e.Corr)
	case tick:
		m.onTick()
	case again:
		m.hand()
		m.askTasks()
	case tell:
		m.tellAgain()
	case *messages.Drain:
		m.add(e.Reply(&messages.Ok{}))
	case *messages.Ok: // of config
	default:
		m.onUnknown(e.Msg)
	}
}

func (m *machine) subscribe() kit.Send { return m.values.Subscribe(configs.GuardPrefix) }

func (m *machine) add(e ...kit.Effect) { m.out = append(m.out, e...) }

func (m *machine) onUnknown(msg any) {
	name := fmt.Sprintf("%T", msg)
	if m.unknown[name] {
		return
	}
	m.unknown[name] = true
	m.add(kit.Log{Level: kit.Warn, Text: "unknown message", Attrs: []any{"type", name}})
}

// onRestarted heals what a restarted neighbour has lost.
func (m *machine) onRestarted(r kit.Restarted) {
	if r.Who.GetPath() == m.ledger.GetPath() {
		m.hand()
		m.askTasks()
		return
	}
	m.add(m.subscribe())
}

func (m *machine) onLoaded(l loaded) {
	if l.Err != nil {
		panic("guard: the approvals were not read: " + l.Err.Error()) // the restart row decides
	}
	if len(l.Damaged) > 0 {
		m.add(kit.Log{Level: kit.Error, Text: "damaged approvals are passed over; their calls are asked about anew", Attrs: []any{"ids", l.Damaged}})
	}
	if l.Spoilt > 0 {
		m.add(kit.Log{Level: kit.Error, Text: "damaged tokens are passed over; they work no more", Attrs: []any{"count", l.Spoilt}})
	}
	for _, t := range l.Tokens {
		m.tokens[t.GetName()] = &token{t: t}
	}
	for _, a := range l.List {
		m.keep(a)
		m.asked[a.GetTaskId()] = true
	}
	m.loaded = true
	m.begin()
}

// begin serves once the policy and the approvals are known.
func (m *machine) begin() {
	if m.ready || !m.loaded || !m.values.Known() {
		return
	}
	m.ready = true
	m.add(kit.Ready{})
	m.askTasks()
	m.rerun()
}

// keep puts an approval into its places; a decided one is kept slim.
func (m *machine) keep(a *messages.Approval) {
	id := a.GetApprovalId()
	if !pending(a) {
		a = slim(a)
	}
	x := m.entries[id]
	if x == nil {
		x = &entry{}
		m.entries[id] = x
		m.place(a)
	}
	x.a, x.busy = a, false
	delete(m.waiting, id)
	if pending(a) {
		m.waiting[id] = x
	}
}

// place makes an approval findable by its call and task.
func (m *machine) place(a *messages.Approval) {
	id := a.GetApprovalId()
	m.calls[a.GetCall().GetCallId()] = append(m.calls[a.GetCall().GetCallId()], id)
	of := m.tasks[a.GetTaskId()]
	if of == nil {
		of = map[string]bool{}
		m.tasks[a.GetTaskId()] = of
	}
	of[id] = true
}

// forget takes an approval out of its places.
func (m *machine) forget(id string) {
	x := m.entries[id]
	if x == nil {
		return
	}
	delete(m.entries, id)
	delete(m.waiting, id)
	call, task := x.a.GetCall().GetCallId(), x.a.GetTaskId()
	if rest := slices.DeleteFunc(m.calls[call], func(s string) bool { return s == id }); len(rest) > 0 {
		m.calls[call] = rest
	} else {
		delete(m.calls, call)
	}
	if delete(m.tasks[task], id); len(m.tasks[task]) == 0 {
		delete(m.tasks, task)
	}
}

// waits tells whether an approval of the task waits for a person.
func (m *machine) waits(task string) bool {
	for id := range m.tasks[task] {
		if m.waiting[id] != nil {
			return true
		}
	}
	return false
}

// schedule sets the timer for what expires next.
func (m *machine) schedule() {
	if !m.ready {
		return
	}
	at := m.now.Add(tickEvery)
	for _, x := range m.waiting {
		if us := x.a.GetExpiresUs(); !x.busy && us != 0 && us < at.UnixMicro() {
			at = time.UnixMicro(us)
		}
	}
	if m.next.After(m.now) && !at.Before(m.next) {
		return
	}
	m.next = at
	m.add(kit.After{Key: "tick", D: max(at.Sub(m.now), 0), Msg: tick{}})
}

// onTick ends what nobody decided in time and forgets what was decided long ago.
func (m *machine) onTick() {
	m.next = time.Time{}
	var old []*messages.Approval
	retention := m.values.Duration(configs.KeyGuardRetention, 30*24*time.Hour)
	for _, id := range slices.Sorted(maps.Keys(m.entries)) {
		switch x := m.entries[id]; {
		case x.busy:
		case pending(x.a):
			m.expire(x)
		default:
			old = append(old, x.a)
		}
	}
	slices.SortFunc(old, approvals.Older)
	for i, a := range old {
		if i < len(old)-keepDecided || m.now.Sub(time.UnixMicro(a.GetDecidedUs())) >= retention {
			m.change(a.GetApprovalId(), nil)
		}
	}
}

// show tells people how many wait, when that has changed.
func (m *machine) show() {
	if !m.ready {
		return
	}
	waiting := len(m.waiting)
	s := kit.State{Word: "ready", Summary: fmt.Sprintf("%d approvals wait, %d are decided", waiting, len(m.entries)-waiting)}
	if s != m.shown {
		m.shown = s
		m.add(s)
	}
}

// Show implements kit.Shower.
func (m *machine) Show() any {
	type row struct {
		ID    string `json:"id"`
		Task  string `json:"task"`
		Agent string `json:"agent"`
		Tool  string `json:"tool"`
	}
	rows := []row{}
	for _, x := range slices.SortedFunc(maps.Values(m.waiting), func(a, b *entry) int { return approvals.Older(a.a, b.a) }) {
		rows = append(rows, row{x.a.GetApprovalId(), x.a.GetTaskId(), x.a.GetAgent(), x.a.GetCall().GetName()})
	}
	return map[string]any{"pending": rows, "kept": len(m.entries), "writing": len(m.flight) + len(m.changes), "held": len(m.later), "untold": len(m.untold), "tokens": len(m.tokens)}
}
