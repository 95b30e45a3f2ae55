package agent

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// Params are what one agent is made with.
type Params struct {
	// Spec says which agent this is.
	Spec             *messages.AgentSpec
	Ledger, Channels *messages.Address
	// SchedulerKind and TurnKind are the rows of its children; zero values mean "scheduler" and "turn".
	SchedulerKind, TurnKind string
}

const (
	maxAgents   = 16
	maxNotes    = 100
	turnPrefix  = "turn/"
	childPrefix = "resident/"
	gatherLimit = 3 * time.Second
)

// child is one resident.
type child struct {
	spec       *messages.AgentSpec
	up         bool
	destroying *destroy
}

// gather collects the views of this agent and its residents for one asker.
type gather struct {
	done  func([]*messages.AgentView)
	left  map[string]bool
	views map[string]*messages.AgentView
}

type state struct {
	p        Params
	self     *messages.Address
	loaded   bool
	children map[string]*child // by name
	turns    map[string]*messages.StartTurn
	waiting  map[string]*pendingTurn // turns that wait for an older one of the same task to end
	gathers  map[string]*gather
	early    []kit.Event
	creates  map[string]*create
	relays   map[string]func(proto.Message) // by correlation: what to do with the answer
	notes    []string
	last     string
	// fenced are the turns that a stop has met: what they still have to report reaches nobody.
	fenced map[string]bool
	// draining: the node stops, so that a turn which ends is not lost; it goes on at the next start.
	draining bool
	seq      uint64
	now      time.Time
	out      []kit.Effect
}

type pendingTurn struct {
	ask   kit.Event
	start *messages.StartTurn
}

// New makes the machine of one incarnation.
func New(p Params) kit.Machine {
	if p.SchedulerKind == "" {
		p.SchedulerKind = "scheduler"
	}
	if p.TurnKind == "" {
		p.TurnKind = "turn"
	}
	return &state{
		p: p, children: map[string]*child{}, turns: map[string]*messages.StartTurn{}, waiting: map[string]*pendingTurn{},
		gathers: map[string]*gather{}, creates: map[string]*create{}, fenced: map[string]bool{}, relays: map[string]func(proto.Message){},
	}
}

func (s *state) resident() bool { return s.p.Spec.GetParent() != "" }

type gatherLate struct{ id string }

// Step implements kit.Machine.
func (s *state) Step(now time.Time, e kit.Event) []kit.Effect {
	s.now, s.out = now, nil
	switch m := e.Msg.(type) {
	case kit.Started:
		s.onStarted(m)
	case *messages.SpawnTurn:
		s.onSpawnTurn(e, m)
	case kit.Ended:
		s.onEnded(m)
	case kit.Fault:
		s.onFault(m)
	case *messages.ListAgents:
		s.onList(e)
	case *messages.CreateAgent:
		s.onCreate(e, m)
	case *messages.DestroyAgent:
		s.onDestroy(e, m)
	case *messages.CallTool:
		s.onCall(e, m)
	case *messages.SendOutput:
		s.onReport(e, m)
	case *messages.StopAll:
		s.onStop(e, m)
	case settleAgain:
		if c := s.children[m.name]; c != nil && c.destroying != nil {
			s.readTasks(m.name, c)
		}
	case gatherLate:
		s.gatherDone(m.id)
	case *messages.Drain:
		s.onDrain(e, m)
	case proto.Message:
		s.onAnswer(e.Corr, m)
	}
	s.show()
	return s.out
}

func (s *state) add(e ...kit.Effect) { s.out = append(s.out, e...) }

// ask sends a request whose answer goes to then.
func (s *state) ask(to *messages.Address, m proto.Message, then func(proto.Message)) {
	s.seq++
	corr := fmt.Sprintf("ask/%d", s.seq)
	s.relays[corr] = then
	s.add(kit.Send{To: to, Corr: corr, Msg: m})
}

func (s *state) onAnswer(corr string, m proto.Message) {
	if then := s.relays[corr]; then != nil {
		delete(s.relays, corr)
		then(m)
	}
}

func (s *state) onStarted(m kit.Started) {
	s.self = m.Self
	s.add(kit.Spawn{Kind: s.p.SchedulerKind, Name: "scheduler", Params: s.p.Spec})
	if s.resident() {
		s.loaded = true
		return
	}
	s.ask(s.p.Ledger, &messages.LedgerPending{Agent: s.p.Spec.GetAgent()}, s.onLoaded)
}

func (s *state) onLoaded(m proto.Message) {
	p, ok := m.(*messages.PendingTasks)
	if !ok {
		s.add(kit.Log{Level: kit.Error, Text: "residents were not read"})
	}
	for _, spec := range p.GetAgents() {
		if spec.GetParent() == s.p.Spec.GetAgent() {
			s.spawnChild(spec)
		}
	}
	s.loaded = true
	early := s.early
	s.early = nil
	for _, e := range early {
		s.onList(e)
	}
}

func (s *state) spawnChild(spec *messages.AgentSpec) *child {
	c := &child{spec: spec}
	name := nameOf(spec.GetAgent())
	s.children[name] = c
	s.add(kit.Spawn{Kind: Kind, Name: childPrefix + name, Params: spec, Watch: true})
	return c
}

func nameOf(agent string) string { return path.Base(agent) }

func (s *state) childPath(name string) *messages.Address {
	return kit.Path(s.self.GetPath() + "/" + childPrefix + name)
}

func (s *state) schedulerPath() *messages.Address { return kit.Path(s.self.GetPath() + "/scheduler") }

// onSpawnTurn starts a turn; an older one of the same task is ended first.
func (s *state) onSpawnTurn(e kit.Event, m *messages.SpawnTurn) {
	id := m.GetStart().GetTask().GetInput().GetId()
	if s.turns[id] != nil {
		s.waiting[id] = &pendingTurn{ask: e, start: m.GetStart()}
		s.add(kit.Stop{Who: s.turnPath(id)})
		return
	}
	s.spawnTurn(e, m.GetStart())
}

func (s *state) turnPath(id string) *messages.Address {
	return &messages.Address{Path: s.self.GetPath() + "/" + turnPrefix + id, Epoch: s.self.GetEpoch(), Node: s.self.GetNode()}
}

func (s *state) spawnTurn(e kit.Event, start *messages.StartTurn) {
	id := start.GetTask().GetInput().GetId()
	s.turns[id] = start
	s.add(
		kit.Spawn{Kind: s.p.TurnKind, Name: turnPrefix + id, Params: start, Watch: true},
		e.Reply(&messages.TurnSpawned{TaskId: id, Generation: start.GetGeneration(), Turn: s.turnPath(id)}),
	)
}

func (s *state) onEnded(m kit.Ended) {
	if id, ok := strings.CutPrefix(m.Name, turnPrefix); ok {
		why := m.Failure
		if why == "" && !m.ByPerson {
			why = "the turn was stopped"
		}
		s.turnEnded(id, why)
		return
	}
	if name, ok := strings.CutPrefix(m.Name, childPrefix); ok {
		s.childEnded(name, m.Failure)
	}
}

// turnEnded tells the scheduler of a turn that is gone; without a failure a person has stopped it.
func (s *state) turnEnded(id, failure string) {
	start := s.turns[id]
	if start == nil {
		return
	}
	delete(s.turns, id)
	delete(s.fenced, id)
	if s.draining {
		delete(s.waiting, id)
		return
	}
	if w := s.waiting[id]; w != nil {
		delete(s.waiting, id)
		s.spawnTurn(w.ask, w.start)
		return
	}
	s.add(kit.Send{To: s.schedulerPath(), Msg: &messages.TurnLost{
		TaskId: id, Generation: start.GetGeneration(), Failure: failure,
	}})
}

func (s *state) onFault(f kit.Fault) {
	switch e := f.Effect.(type) {
	case kit.Spawn:
		if id, ok := strings.CutPrefix(e.Name, turnPrefix); ok {
			s.turnEnded(id, f.Err.GetMessage())
		} else if name, ok := strings.CutPrefix(e.Name, childPrefix); ok {
			s.childEnded(name, f.Err.GetMessage())
		}
	case kit.Send:
		s.onAnswer(e.Corr, f.Err)
	}
}

// onStop passes a stop on to the residents and answers with what they have stopped in all. A stop of one conversation
// means all of those that were created in it.
func (s *state) onStop(e kit.Event, m *messages.StopAll) {
	for id, start := range s.turns {
		if c := m.GetConversation(); c == "" || start.GetTask().GetInput().GetConversation() == c {
			s.fenced[id] = true
		}
	}
	var to []string
	for _, n := range slices.Sorted(maps.Keys(s.children)) {
		if c := m.GetConversation(); c == "" || s.children[n].spec.GetOriginConversation() == c {
			to = append(to, n)
		}
	}
	sum, left := &messages.StopResult{}, len(to)
	if left == 0 {
		s.add(e.Reply(sum))
		return
	}
	for _, n := range to {
		s.ask(kit.Path(s.childPath(n).GetPath()+"/scheduler"), &messages.StopAll{Principal: m.GetPrincipal()}, func(got proto.Message) {
			if r, ok := got.(*messages.StopResult); ok {
				sum.Stopped += r.GetStopped()
				sum.Quota += r.GetQuota()
			}
			if left--; left == 0 {
				s.add(e.Reply(sum))
			}
		})
	}
}

// onDrain passes a drain on to the residents and answers when all of them have, so that the first turn is ended only
// when no agent takes the end of a turn for a failure any more.
func (s *state) onDrain(e kit.Event, m *messages.Drain) {
	s.draining = true
	left := len(s.children)
	if left == 0 {
		s.add(e.Reply(&messages.Ok{}))
		return
	}
	for _, n := range slices.Sorted(maps.Keys(s.children)) {
		s.ask(kit.Path(s.childPath(n).GetPath()), m, func(proto.Message) {
			if left--; left == 0 {
				s.add(e.Reply(&messages.Ok{}))
			}
		})
	}
}

func (s *state) show() {
	line := fmt.Sprintf("%d turns", len(s.turns))
	if !s.resident() {
		line += fmt.Sprintf(", %d residents", len(s.children))
	}
	s.add(kit.State{Word: "running", Summary: line})
}

// Show implements kit.Shower.
func (s *state) Show() any {
	return map[string]any{
		"agent": s.p.Spec.GetAgent(), "parent": s.p.Spec.GetParent(), "task_prompt": s.p.Spec.GetTaskPrompt(),
		"turns": slices.Sorted(maps.Keys(s.turns)), "residents": slices.Sorted(maps.Keys(s.children)), "notes": s.notes,
	}
}
