package scheduler

import (
	"strconv"
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
	// Guard keeps the approvals that parked tasks wait for; nil means the actor at guard.
	Guard *messages.Address
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
	topLevel     = 4
)

type phase int

const (
	waiting phase = iota
	spawning
	running
	suspending
	suspended
	parked
	ending
)

// task is one input that has not ended.
type task struct {
	input     *messages.Input
	sequence  uint64
	rank      int64 // before sequence in the order of its queue; negative for those put at the head
	queued    bool  // it stands in the queue of its level
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
	cancel    *messages.Cancel // sent, or wanted while the turn is being spawned
	stopped   bool             // a stop has taken it: nothing that joined it becomes a task
	steers    []*steer
	begun     bool // its turn has run: it has a journal
	wasCut    bool // its next start is a resumption
	cutHere   bool // this process counted its suspension
	approved  bool // its next start follows an approval
	unread    bool // its journal must be read before it starts
	reading   bool // its journal is being read
	approvals []string
	until     time.Time // while parked for a time, and not for people
	said      saying
	short     string // first characters of its text
}

func (t *task) id() string { return t.input.GetId() }

// steer is an input on its way into a turn; the asker still waits for the outcome.
type steer struct {
	input *messages.Input
	ask   kit.Event
	sent  bool
}

// cut is the preemption under way.
type cut struct {
	by     string
	level  int32
	reason string
}

type state struct {
	p         Params
	values    kit.Values
	self      *messages.Address
	loaded    bool
	draining  bool // the node stops: nothing new starts
	early     []kit.Event
	tasks     map[string]*task
	current   *task
	slot      *task
	armed     time.Time // when the cooldown is over that something waits for
	asked     [2]*task  // the running task and the head of the highest queue that was considered against it
	cut       cut
	stack     []*task
	levels    [topLevel + 1]queue // waiting by level; [0] is the ready queue
	steered   map[string]*task
	parked    map[string]*task
	sayings   map[saying]*task
	ends      map[string]*end
	recent    map[string]struct{}
	order     []string
	gen       uint64
	corr      uint64 // last number of a request
	front     int64  // last rank given at the head of a queue
	sequence  uint64 // greatest inbox sequence seen
	stops     []*messages.StopMoment
	stopping  map[string]*stopping
	collected *[]string // ends that are gathered into one transaction
	edits     map[string]*edit
	releases  map[string]*release
	counters  *messages.SchedulerCounters
	now       time.Time
	out       []kit.Effect
}

// New makes the machine of one incarnation.
func New(p Params) kit.Machine {
	if p.Guard == nil {
		p.Guard = kit.Path("guard")
	}
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
		p:        p,
		tasks:    map[string]*task{},
		steered:  map[string]*task{},
		parked:   map[string]*task{},
		sayings:  map[saying]*task{},
		ends:     map[string]*end{},
		recent:   map[string]struct{}{},
		stopping: map[string]*stopping{},
		edits:    map[string]*edit{},
		releases: map[string]*release{},
		counters: &messages.SchedulerCounters{
			Ended:      map[string]uint64{},
			Interrupts: map[string]uint64{},
			Preempts:   map[string]uint64{},
		},
	}
}

type (
	// tick asks anew whether something may preempt: a cooldown is over.
	tick struct{}
	// retry writes an end again.
	retry struct{ task string }
	// reread asks for pending tasks again.
	reread struct{ corr, task string }
	// expire ends a task that still waits at its deadline.
	expire struct{ task string }
	// slow ends a turn that does not answer a cancel.
	slow struct {
		task string
		gen  uint64
	}
)

const corrLoad = "load"

// Step implements kit.Machine.
func (s *state) Step(now time.Time, e kit.Event) []kit.Effect {
	s.now, s.out = now, nil
	if !s.loaded && s.hold(e) {
		return s.out
	}
	s.receive(e)
	s.reconsider()
	s.show()
	return s.out
}

func (s *state) receive(e kit.Event) {
	switch m := e.Msg.(type) {
	case kit.Started:
		s.onStarted(m)
	case *messages.PendingTasks:
		s.onPending(e, m)
	case *messages.Offer:
		s.onOffer(e, m)
	case *messages.StopAll:
		s.onStop(e, m)
	case *messages.StopResult:
		s.onChildrenStopped(e.Corr, m)
	case *messages.EditQueue:
		s.onEdit(e, m)
	case *messages.SchedulerQuery:
		s.add(e.Reply(s.view(int(m.GetMost()))))
	case *messages.TurnSpawned:
		s.onSpawned(m)
	case *messages.TurnLost:
		s.onLost(m)
	case *messages.Suspended:
		s.onSuspended(m)
	case *messages.Resumed:
		s.onResumed(m)
	case *messages.Parked:
		s.onParked(m)
	case *messages.ApprovalsDecided:
		s.onDecided(m)
	case *messages.ApprovalList:
		s.onApprovals(e.Corr, m)
	case *messages.Finished:
		s.onFinished(m)
	case *messages.SteerTaken:
		s.onSteerTaken(m)
	case *messages.LedgerDone:
		s.onLedgerDone(e, m)
	case *messages.Ok:
		delete(s.releases, e.Corr)
	case *messages.ConfigChanged:
		s.onConfig(m)
	case *messages.Error:
		s.refused(e.Corr, m)
	case *messages.Busy:
		s.refused(e.Corr, &messages.Error{Code: "busy", Message: "The actor asked has too much to do."})
	case *messages.Drain:
		s.draining = true
		s.add(e.Reply(&messages.Ok{}))
	case kit.Fault:
		s.onFault(m)
	case kit.Stopping:
		s.onStopping()
	default:
		s.onTimer(m)
	}
}

func (s *state) onTimer(m any) {
	switch m := m.(type) {
	case tick:
		s.armed = time.Time{}
		s.rearm()
	case retry:
		s.writeEnd(m.task)
	case reread:
		s.load(m.corr, m.task)
	case expire:
		s.onExpire(m.task)
	case slow:
		s.onSlow(m)
	case stopLate:
		s.stopDone(m.id)
	case stopAgain:
		s.onStopAgain(m.id)
	case askApprovals:
		s.askParked()
	case releaseAgain:
		s.sendRelease(m.corr)
	case wake:
		s.onWake(m)
	}
}

// hold keeps what comes before the pending tasks are known.
func (s *state) hold(e kit.Event) bool {
	switch e.Msg.(type) {
	case *messages.Offer, *messages.StopAll, *messages.SchedulerQuery, *messages.EditQueue, *messages.ApprovalsDecided:
		s.early = append(s.early, e)
		return true
	}
	return false
}

func (s *state) add(e ...kit.Effect) { s.out = append(s.out, e...) }

// number makes the number of a request.
func (s *state) number() string {
	s.corr++
	return strconv.FormatUint(s.corr, 10)
}

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

// refused handles a request that was answered with an error instead of its answer.
func (s *state) refused(corr string, err *messages.Error) {
	if id, ok := endOf(corr); ok {
		s.endRefused(id, err)
		return
	}
	switch id, lost := lostOf(corr); {
	case corr == corrLoad || lost:
		s.add(kit.Log{Level: kit.Error, Text: "pending tasks were not read", Attrs: []any{"code", err.GetCode()}},
			kit.After{Key: corr, D: retryEnd, Msg: reread{corr, id}})
	case s.stopping[stopOf(corr)] != nil:
		s.stopRefused(corr, err)
	case s.edits[corr] != nil:
		s.edited(corr, err)
	case s.releases[corr] != nil:
		s.releaseRefused(corr)
	case isApprovals(corr):
		s.add(kit.After{Key: "approvals", D: approvalsEvery, Msg: askApprovals{}})
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
	case *messages.SpawnTurn:
		t := s.tasks[m.GetStart().GetTask().GetInput().GetId()]
		if t != nil && t.gen == m.GetStart().GetGeneration() {
			s.lost(t, "the agent did not take the turn: "+f.Err.GetMessage())
		}
	case *messages.Steer:
		s.steerRefused(m.GetGeneration(), m.GetInput().GetId())
	default:
		s.refused(send.Corr, f.Err)
	}
}

// onStopping notes that what runs did not bring the node down.
func (s *state) onStopping() {
	if t := s.current; t != nil && t.phase != ending {
		s.add(s.ledger("", &messages.LedgerOp{Op: &messages.LedgerOp_SetTask{SetTask: &messages.SetTask{
			TaskId: t.id(), State: messages.TaskState_TASK_STATE_RUNNING, Level: effective(t), Preempted: t.preempted, Clean: true,
		}}}))
	}
}

func (s *state) ledger(corr string, ops ...*messages.LedgerOp) kit.Send {
	return kit.Send{To: s.p.Ledger, Corr: corr, Msg: &messages.LedgerExecute{Ops: ops, Silent: corr == "", Sync: corr != ""}}
}

func (s *state) setTask(t *task, st messages.TaskState) *messages.LedgerOp {
	return &messages.LedgerOp{Op: &messages.LedgerOp_SetTask{SetTask: &messages.SetTask{
		TaskId: t.id(), State: st, Joined: t.joined, Level: effective(t), Preempted: t.preempted,
	}}}
}
