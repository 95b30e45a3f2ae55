package scheduler

import (
	"time"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/messages"
)

// Params are what a scheduler is made with.
type Params struct {
	// Agent it decides for.
	Agent *messages.AgentSpec
	// Ledger and AgentActor are whom it talks to; AgentActor is the parent of its turns.
	Ledger, AgentActor *messages.Address
	// Cooldown after a preemption; zero means 2 s.
	Cooldown time.Duration
	// DuplicateWindow in which a repeated unfinished input without a key is a duplicate; zero means 10 s.
	DuplicateWindow time.Duration
	// TurnDeadline bounds a turn's running and suspended time; zero means none.
	TurnDeadline time.Duration
	// MaxRounds of a turn; zero means 25.
	MaxRounds int32
}

const (
	maxStarts    = 3
	maxDepth     = 4
	recentEnds   = 1024
	defaultRound = 25
	retryEnd     = time.Second
)

type phase int

const (
	waiting phase = iota
	spawning
	running
	suspending
	suspended
	ending
)

// task is one input that has not ended.
type task struct {
	input     *messages.Input
	sequence  uint64
	phase     phase
	since     time.Time
	arrived   time.Time
	preempted int32
	lastCut   time.Time
	starts    int32
	journal   []*messages.JournalEntry
	joined    string // steered into this task
	gen       uint64
	turn      *messages.Address
	turnPhase messages.Phase
	cancel    *messages.Cancel // wanted while the turn is being spawned
	steers    []*steer
	wasCut    bool // its next start is a resumption
	unread    bool // its journal must be read before it starts
}

// steer is an input on its way into a turn; the asker still waits for the outcome.
type steer struct {
	input *messages.Input
	ask   kit.Event
	sent  bool
}

type state struct {
	p        Params
	values   kit.Values
	self     *messages.Address
	loaded   bool
	early    []kit.Event
	tasks    map[string]*task
	current  *task
	slot     *task
	stack    []*task
	levels   [5][]*task // waiting by level, in order; [0] is the ready queue
	steered  map[string]*task
	ends     map[string]*end
	recent   map[string]struct{}
	order    []string
	gen      uint64
	stopped  time.Time // inputs made before it and offered later are stopped
	counters *messages.SchedulerCounters
	now      time.Time
	out      []kit.Effect
}

// end is an end being written.
type end struct {
	ops       []*messages.LedgerOp
	published []*messages.AgentEvent
}

// New makes the machine of one incarnation.
func New(p Params) kit.Machine {
	if p.Cooldown == 0 {
		p.Cooldown = 2 * time.Second
	}
	if p.DuplicateWindow == 0 {
		p.DuplicateWindow = 10 * time.Second
	}
	if p.MaxRounds == 0 {
		p.MaxRounds = defaultRound
	}
	return &state{
		p:       p,
		tasks:   map[string]*task{},
		steered: map[string]*task{},
		ends:    map[string]*end{},
		recent:  map[string]struct{}{},
		counters: &messages.SchedulerCounters{
			Ended:      map[string]uint64{},
			Interrupts: map[string]uint64{},
		},
	}
}

// tick asks anew whether something may preempt.
type tick struct{}

// retry writes an end again.
type retry struct{ task string }

// reread asks for pending tasks again.
type reread struct{ corr, task string }

const corrLoad = "load"

// Step implements kit.Machine.
func (s *state) Step(now time.Time, e kit.Event) []kit.Effect {
	s.now, s.out = now, nil
	if !s.loaded && s.hold(e) {
		return s.out
	}
	switch m := e.Msg.(type) {
	case kit.Started:
		s.onStarted(m)
	case *messages.PendingTasks:
		s.onPending(e, m)
	case *messages.Offer:
		s.onOffer(e, m)
	case *messages.StopAll:
		s.onStop(e, m)
	case *messages.SchedulerQuery:
		s.add(e.Reply(s.view()))
	case *messages.TurnSpawned:
		s.onSpawned(m)
	case *messages.TurnLost:
		s.onLost(m)
	case *messages.Suspended:
		s.onSuspended(m)
	case *messages.Resumed:
		s.onResumed(m)
	case *messages.Finished:
		s.onFinished(m)
	case *messages.SteerTaken:
		s.onSteerTaken(m)
	case *messages.LedgerDone:
		s.onLedgerDone(e, m)
	case *messages.ConfigChanged:
		s.onConfig(m)
	case *messages.Error:
		s.onError(e, m)
	case *messages.Drain:
		s.add(e.Reply(&messages.Ok{}))
	case tick:
		s.rearm()
	case retry:
		s.writeEnd(m.task)
	case reread:
		s.load(m.corr, m.task)
	case kit.Fault:
		s.onFault(m)
	case kit.Stopping:
		s.onStopping()
	}
	s.show()
	return s.out
}

// hold keeps what comes before the pending tasks are known.
func (s *state) hold(e kit.Event) bool {
	switch e.Msg.(type) {
	case *messages.Offer, *messages.StopAll, *messages.SchedulerQuery:
		s.early = append(s.early, e)
		return true
	}
	return false
}

func (s *state) add(e ...kit.Effect) { s.out = append(s.out, e...) }

func (s *state) onStarted(m kit.Started) {
	s.self = m.Self
	s.load(corrLoad, "")
	s.add(s.values.Subscribe(configs.KeySchedulerCooldown, configs.KeyInputDuplicateWindow, configs.KeyAgentTurnDeadline, configs.KeyAgentMaxToolTurns))
}

// onConfig puts changed settings in force for what comes.
func (s *state) onConfig(m *messages.ConfigChanged) {
	v := &s.values
	v.Take(m)
	s.p.Cooldown = v.Duration(configs.KeySchedulerCooldown, s.p.Cooldown)
	s.p.DuplicateWindow = v.Duration(configs.KeyInputDuplicateWindow, s.p.DuplicateWindow)
	s.p.TurnDeadline = v.Duration(configs.KeyAgentTurnDeadline, s.p.TurnDeadline)
	s.p.MaxRounds = int32(v.Int(configs.KeyAgentMaxToolTurns, int64(s.p.MaxRounds)))
}

func (s *state) load(corr, id string) {
	s.add(kit.Send{
		To: s.p.Ledger, Corr: corr,
		Msg: &messages.LedgerPending{Agent: s.p.Agent.GetAgent(), TaskId: id},
	})
}

// onPending takes in what ledger knows: at the start everything, later one lost task.
func (s *state) onPending(e kit.Event, m *messages.PendingTasks) {
	if e.Corr != corrLoad {
		for _, p := range m.GetTasks() {
			s.reload(p)
		}
		return
	}
	if s.loaded {
		return
	}
	s.loaded = true
	for _, p := range m.GetTasks() {
		s.restore(p)
	}
	s.settleSteered()
	s.sortStack()
	s.dispatch()
	s.add(kit.Ready{})
	held := s.early
	s.early = nil
	for _, h := range held {
		out := s.out
		next := s.Step(s.now, h)
		s.out = append(out, next...)
	}
}

// restore takes one task back after a restart of the scheduler or the node.
func (s *state) restore(p *messages.PendingTask) {
	in := p.GetInput()
	t := &task{
		input: in, sequence: p.GetSequence(), since: s.now, arrived: s.now,
		preempted: p.GetPreempted(), starts: p.GetStarts(), journal: p.GetJournal(), joined: p.GetJoined(),
	}
	s.tasks[in.GetId()] = t
	switch p.GetState() {
	case messages.TaskState_TASK_STATE_RUNNING, messages.TaskState_TASK_STATE_SUSPENDED, messages.TaskState_TASK_STATE_PARKED:
		if p.GetState() == messages.TaskState_TASK_STATE_RUNNING && t.starts >= maxStarts {
			s.finish(t, messages.End_END_FAILED, "crash_loop", "This task brought the node down three times and was ended.", "", nil)
			return
		}
		t.phase, t.wasCut = suspended, p.GetState() != messages.TaskState_TASK_STATE_RUNNING
		s.stack = append(s.stack, t)
	case messages.TaskState_TASK_STATE_STEERED:
		s.steered[in.GetId()] = t
	default:
		s.enqueue(t, false)
	}
}

// settleSteered gives inputs whose turn is gone a turn of their own.
func (s *state) settleSteered() {
	for _, id := range sortedKeys(s.steered) {
		t := s.steered[id]
		if host := s.tasks[t.joined]; host != nil && host.phase != ending && s.steered[t.joined] == nil {
			continue
		}
		delete(s.steered, id)
		s.requeue(t)
	}
}

// onFault handles an effect that could not be performed.
func (s *state) onFault(f kit.Fault) {
	send, ok := f.Effect.(kit.Send)
	if !ok {
		return
	}
	switch m := send.Msg.(type) {
	case *messages.LedgerPending:
		s.add(kit.After{Key: send.Corr, D: retryEnd, Msg: reread{send.Corr, m.GetTaskId()}})
	case *messages.LedgerExecute:
		if id, found := endOf(send.Corr); found {
			s.add(kit.After{Key: send.Corr, D: retryEnd, Msg: retry{id}})
		}
	case *messages.SpawnTurn:
		t := s.tasks[m.GetStart().GetTask().GetInput().GetId()]
		if t != nil && t.gen == m.GetStart().GetGeneration() {
			s.lost(t, "the agent did not take the turn: "+f.Err.GetMessage())
		}
	case *messages.Steer:
		s.steerRefused(m.GetGeneration(), m.GetInput().GetId())
	}
}

// onStopping notes that what runs did not bring the node down.
func (s *state) onStopping() {
	note := func(t *task, st messages.TaskState) {
		s.add(s.ledger("", &messages.LedgerOp{Op: &messages.LedgerOp_SetTask{SetTask: &messages.SetTask{
			TaskId: t.input.GetId(), State: st, Level: effective(t), Preempted: t.preempted, Clean: true,
		}}}))
	}
	if s.current != nil && s.current.phase != ending {
		note(s.current, messages.TaskState_TASK_STATE_RUNNING)
	}
}

func (s *state) ledger(corr string, ops ...*messages.LedgerOp) kit.Send {
	return kit.Send{To: s.p.Ledger, Corr: corr, Msg: &messages.LedgerExecute{Ops: ops, Silent: corr == "", Sync: corr != ""}}
}

func (s *state) setTask(t *task, st messages.TaskState) *messages.LedgerOp {
	return &messages.LedgerOp{Op: &messages.LedgerOp_SetTask{SetTask: &messages.SetTask{
		TaskId: t.input.GetId(), State: st, Joined: t.joined, Level: effective(t), Preempted: t.preempted,
	}}}
}
