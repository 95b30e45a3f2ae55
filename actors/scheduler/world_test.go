package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// world plays ledger, agent, turns and guard around a scheduler. It is deterministic: chance comes from its seed alone.
type world struct {
	t       testing.TB
	rng     *rand.Rand
	m       *state
	now     time.Time
	pending []kit.Event
	timers  map[string]timer
	turns   map[string]*turnSim // by task
	stack   []string            // suspended by this incarnation, the last one on top
	held    map[string]bool     // tasks for which an approval is not decided
	ledger  *ledgerSim
	changes map[string][]string // what was published of each task
	ended   map[string]string   // end published
	sent    []kit.Send
	refuse  int // one in so many synced writes is refused; zero means none
	logs    []string
	results map[string]*messages.StopResult
	replies map[string]proto.Message
	resumes []string        // order in which turns went on
	deaf    map[string]bool // turns that do not obey a cancel
	// steering says whether turns take what is steered into them; nil leaves it to chance.
	steering *bool
}

type timer struct {
	due time.Time
	msg any
}

// turnSim is a turn: it obeys at once, but is heard later.
type turnSim struct {
	id        string
	gen       uint64
	at        *messages.Address
	suspended bool
	took      []string
}

// ledgerSim keeps what a node keeps over kill -9.
type ledgerSim struct {
	tasks map[string]*taskSim
	stops []*messages.StopMoment
	dead  map[string]bool // taken by a stop that is on disk
}

type taskSim struct {
	messages.PendingTask
	end    *messages.EndTask
	result bool // its turn got on since it was last started
}

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 7)), now: start, ledger: &ledgerSim{
			tasks: map[string]*taskSim{}, dead: map[string]bool{},
		},
		held: map[string]bool{}, changes: map[string][]string{}, ended: map[string]string{},
		results: map[string]*messages.StopResult{}, replies: map[string]proto.Message{}, deaf: map[string]bool{},
	}
	w.boot()
	return w
}

// boot starts a scheduler over what the ledger holds; everything else is gone.
func (w *world) boot() {
	w.m = New(params).(*state)
	w.pending, w.stack = nil, nil
	w.timers, w.turns = map[string]timer{}, map[string]*turnSim{}
	w.step(kit.Event{Msg: kit.Started{Self: self}})
	w.settle()
}

func (w *world) step(e kit.Event) {
	w.t.Helper()
	for _, f := range w.m.Step(w.now, e) {
		switch f := f.(type) {
		case kit.Send:
			w.sent = append(w.sent, f)
			w.take(f)
		case kit.Reply:
			w.replies[f.Corr] = f.Msg
			if r, ok := f.Msg.(*messages.StopResult); ok {
				w.results[f.Corr] = r
			}
		case kit.After:
			w.timers[f.Key] = timer{w.now.Add(f.D), f.Msg}
		case kit.CancelAfter:
			delete(w.timers, f.Key)
		case kit.Log:
			w.logs = append(w.logs, f.Text+" "+fmt.Sprint(f.Attrs...))
		case kit.Publish:
			w.publish(f.Event)
		case kit.Stop:
			w.kill(f.Who, "the turn was stopped")
		}
	}
	w.check()
}

func (w *world) publish(e *messages.AgentEvent) {
	c := e.GetTask()
	if c == nil {
		return
	}
	w.changes[e.GetTaskId()] = append(w.changes[e.GetTaskId()], c.GetChange())
	if c.GetChange() == "ended" {
		if w.ended[e.GetTaskId()] != "" {
			w.t.Fatalf("%s was told to have ended twice", e.GetTaskId())
		}
		w.ended[e.GetTaskId()] = endName(c.GetEnded().GetEnd()) + " " + c.GetEnded().GetReason()
	}
}

func (w *world) back(e kit.Event) { w.pending = append(w.pending, e) }

func (w *world) take(f kit.Send) {
	switch m := f.Msg.(type) {
	case *messages.LedgerPending:
		w.back(kit.Event{Corr: f.Corr, Msg: w.ledger.pending(m.GetTaskId())})
	case *messages.LedgerExecute:
		w.execute(f.Corr, m)
	case *messages.SpawnTurn:
		w.spawn(m.GetStart())
	case *messages.Preempt:
		if t := w.turnAt(f.To, m.GetGeneration()); t != nil && !t.suspended {
			t.suspended = true
			w.stack = append(w.stack, t.id)
			w.ledger.tasks[t.id].Journal = append(w.ledger.tasks[t.id].Journal, &messages.JournalEntry{
				Kind: messages.JournalKind_JOURNAL_KIND_SUSPENDED, AtUs: w.now.UnixMicro(),
			})
			w.back(kit.Event{Msg: &messages.Suspended{TaskId: t.id, Generation: t.gen, Phase: messages.Phase_PHASE_TOOLS}})
		}
	case *messages.Resume:
		w.resume(w.turnAt(f.To, m.GetGeneration()))
	case *messages.Cancel:
		if t := w.turnAt(f.To, m.GetGeneration()); t != nil && !w.deaf[t.id] {
			w.finish(t, &messages.Finished{End: m.GetEnd(), Reason: m.GetReason()})
		}
	case *messages.Steer:
		w.steer(f, m)
	case *messages.ListApprovals:
		list := &messages.ApprovalList{}
		if w.held[m.GetTaskId()] {
			list.Approvals = []*messages.Approval{{ApprovalId: "y", State: messages.ApprovalState_APPROVAL_STATE_PENDING}}
		}
		w.back(kit.Event{Corr: f.Corr, Msg: list})
	case *messages.ReleaseApprovals:
		for _, id := range m.GetTaskIds() {
			delete(w.held, id)
		}
		w.back(kit.Event{Corr: f.Corr, Msg: &messages.Ok{}})
	case *messages.StopAll:
		w.back(kit.Event{Corr: f.Corr, Msg: &messages.StopResult{}})
	}
}

func (w *world) execute(corr string, m *messages.LedgerExecute) {
	d := &messages.LedgerDone{}
	if corr != "" && w.refuse > 0 && w.rng.IntN(w.refuse) == 0 {
		d.Error = &messages.Error{Code: "disk_low"}
	} else {
		d.Error = w.ledger.apply(m.GetOps())
	}
	if corr != "" {
		w.back(kit.Event{Corr: corr, Msg: d})
	} else if d.GetError() != nil {
		w.t.Fatalf("a silent write was refused: %v %v", d.GetError(), m.GetOps())
	}
}

// apply does the operations of one transaction.
func (l *ledgerSim) apply(ops []*messages.LedgerOp) *messages.Error {
	for _, op := range ops {
		if e := op.GetEnd(); e != nil {
			if t := l.tasks[e.GetTaskId()]; t.end != nil && (t.end.GetEnd() != e.GetEnd() || t.end.GetReason() != e.GetReason()) {
				return &messages.Error{Code: "already_ended"}
			}
		}
	}
	for _, op := range ops {
		switch o := op.GetOp().(type) {
		case *messages.LedgerOp_SetTask:
			t := l.tasks[o.SetTask.GetTaskId()]
			if t.end != nil {
				return &messages.Error{Code: "already_ended"}
			}
			t.State, t.Joined, t.Preempted = o.SetTask.GetState(), o.SetTask.GetJoined(), o.SetTask.GetPreempted()
			if t.State == messages.TaskState_TASK_STATE_RUNNING && !o.SetTask.GetResumed() {
				if t.result {
					t.Starts, t.result = 0, false
				}
				t.Starts++
			}
		case *messages.LedgerOp_End:
			l.tasks[o.End.GetTaskId()].end = o.End
		case *messages.LedgerOp_Edit:
			t := l.tasks[o.Edit.GetTaskId()]
			in := proto.CloneOf(t.GetInput())
			if len(o.Edit.GetParts()) > 0 {
				in.Parts = o.Edit.GetParts()
			}
			if o.Edit.Level != nil {
				in.Level = o.Edit.Level
			}
			t.Input = in
		case *messages.LedgerOp_Stops:
			l.stops = o.Stops.GetMoments()
			last := l.stops[len(l.stops)-1]
			for id, t := range l.tasks {
				c := last.GetConversation()
				if t.GetSequence() <= last.GetSequence() && (c == "" || c == t.GetInput().GetConversation()) {
					l.dead[id] = true
				}
			}
		}
	}
	return nil
}

func (l *ledgerSim) pending(id string) *messages.PendingTasks {
	out := &messages.PendingTasks{Stops: l.stops}
	for _, k := range sortedKeys(l.tasks) {
		t := l.tasks[k]
		if t.end != nil || id != "" && id != k {
			continue
		}
		p := proto.CloneOf(&t.PendingTask)
		if t.result {
			p.Starts = 0
		}
		out.Tasks = append(out.Tasks, p)
	}
	slices.SortFunc(out.Tasks, func(a, b *messages.PendingTask) int { return int(a.GetSequence()) - int(b.GetSequence()) })
	return out
}

func (w *world) spawn(s *messages.StartTurn) {
	id := s.GetTask().GetInput().GetId()
	if w.ledger.tasks[id].end != nil || w.ledger.dead[id] {
		w.t.Fatalf("%s runs again after its end", id)
	}
	if w.turns[id] != nil {
		w.t.Fatalf("%s has two turns", id)
	}
	t := &turnSim{id: id, gen: s.GetGeneration(), at: kit.Path(fmt.Sprintf("agents/main/turn/%s.%d", id, s.GetGeneration()))}
	w.turns[id] = t
	w.resumes = append(w.resumes, id)
	w.back(kit.Event{Msg: &messages.TurnSpawned{TaskId: id, Generation: t.gen, Turn: t.at}})
}

func (w *world) turnAt(at *messages.Address, gen uint64) *turnSim {
	for _, t := range w.turns {
		if t.at.GetPath() == at.GetPath() && t.gen == gen {
			return t
		}
	}
	return nil
}

func (w *world) resume(t *turnSim) {
	if t == nil {
		return
	}
	if top := w.stack[len(w.stack)-1]; top != t.id {
		w.t.Fatalf("%s goes on before %s, which was suspended after it", t.id, top)
	}
	w.stack = w.stack[:len(w.stack)-1]
	t.suspended = false
	w.resumes = append(w.resumes, t.id)
	w.back(kit.Event{Msg: &messages.Resumed{TaskId: t.id, Generation: t.gen}})
}

func (w *world) steer(f kit.Send, m *messages.Steer) {
	t := w.turnAt(f.To, m.GetGeneration())
	if t == nil {
		w.back(kit.Event{Msg: kit.Fault{Effect: f, Err: &messages.Error{Code: "actor_gone"}}})
		return
	}
	taken := w.rng.IntN(3) > 0
	if w.steering != nil {
		taken = *w.steering
	}
	if taken {
		t.took = append(t.took, m.GetInput().GetId())
	}
	w.back(kit.Event{Msg: &messages.SteerTaken{InputId: m.GetInput().GetId(), Generation: t.gen, Taken: taken}})
}

// gone forgets a turn: it says nothing more.
func (w *world) gone(t *turnSim) {
	delete(w.turns, t.id)
	w.stack = slices.DeleteFunc(w.stack, func(id string) bool { return id == t.id })
}

func (w *world) finish(t *turnSim, m *messages.Finished) {
	m.TaskId, m.Generation = t.id, t.gen
	w.gone(t)
	w.back(kit.Event{Msg: m})
}

// kill ends a turn without a word; what it had said before is still heard.
func (w *world) kill(at *messages.Address, failure string) {
	for _, t := range w.turns {
		if t.at.GetPath() == at.GetPath() {
			w.gone(t)
			w.back(kit.Event{Msg: &messages.TurnLost{TaskId: t.id, Generation: t.gen, Failure: failure}})
			return
		}
	}
}

// active is the turn that works.
func (w *world) active() *turnSim {
	for _, id := range sortedKeys(w.turns) {
		if !w.turns[id].suspended {
			return w.turns[id]
		}
	}
	return nil
}

// answer lets the turn that works finish.
func (w *world) answer() {
	if t := w.active(); t != nil {
		w.finish(t, &messages.Finished{End: messages.End_END_ANSWERED, Reason: "ok", Text: "x", Steered: t.took})
	}
}

func (w *world) park() {
	t := w.active()
	if t == nil {
		return
	}
	w.ledger.tasks[t.id].result = true
	w.ledger.tasks[t.id].Journal = append(w.ledger.tasks[t.id].Journal, &messages.JournalEntry{
		Kind: messages.JournalKind_JOURNAL_KIND_PARKED, Approvals: []string{"y"},
	})
	w.held[t.id] = true
	w.gone(t)
	w.back(kit.Event{Msg: &messages.Parked{TaskId: t.id, Generation: t.gen, Approvals: []string{"y"}}})
	w.back(kit.Event{Msg: &messages.TurnLost{TaskId: t.id, Generation: t.gen, Failure: "the turn was stopped"}})
}

func (w *world) decide() {
	for _, id := range sortedKeys(w.held) {
		delete(w.held, id)
		w.back(kit.Event{Msg: &messages.ApprovalsDecided{TaskId: id}})
		return
	}
}

// offer accepts an input and offers it.
func (w *world) offer(in *messages.Input) {
	seq := uint64(len(w.ledger.tasks) + 1)
	w.ledger.tasks[in.GetId()] = &taskSim{PendingTask: messages.PendingTask{
		Input: in, Sequence: seq, State: messages.TaskState_TASK_STATE_QUEUED,
	}}
	w.step(offer(in, seq))
}

// deliver hands over what was said first and not heard yet.
func (w *world) deliver() {
	if len(w.pending) > 0 {
		e := w.pending[0]
		w.pending = w.pending[1:]
		w.step(e)
	}
}

// settle delivers all.
func (w *world) settle() {
	for len(w.pending) > 0 {
		w.deliver()
	}
}

// pass lets time go by; timers that run down are heard at their time.
func (w *world) pass(d time.Duration) {
	end := w.now.Add(d)
	for {
		first := ""
		for _, k := range sortedKeys(w.timers) {
			if t := w.timers[k]; !t.due.After(end) && (first == "" || t.due.Before(w.timers[first].due)) {
				first = k
			}
		}
		if first == "" {
			break
		}
		t := w.timers[first]
		delete(w.timers, first)
		if t.due.After(w.now) {
			w.now = t.due
		}
		w.step(kit.Event{Msg: t.msg})
	}
	w.now = end
}

func (w *world) stop(conversation, corr string) {
	w.step(kit.Event{From: asker, Corr: corr, Msg: &messages.StopAll{Conversation: conversation}})
}

func (w *world) edit(id string, m *messages.EditQueue) {
	m.InputId = id
	m.Principal = &messages.Principal{Id: "owner", Kind: messages.PrincipalKind_PRINCIPAL_KIND_OWNER}
	w.step(kit.Event{From: asker, Corr: "edit " + id, Msg: m})
}

// check holds what must be true after every step.
func (w *world) check() {
	w.t.Helper()
	working := 0
	for _, t := range w.turns {
		if !t.suspended {
			working++
		}
	}
	if working > 1 {
		w.t.Fatalf("%d turns work at once", working)
	}
	s := w.m
	n := 0
	for l := range s.levels {
		for t := range s.levels[l].all() {
			if n++; !t.queued || int(t.input.GetLevel()) != l || t.phase != waiting || s.tasks[t.id()] != t {
				w.t.Fatalf("%s stands in queue %d and should not", t.id(), l)
			}
		}
	}
	if n+len(s.stack)+len(s.parked)+len(s.steered) > len(s.tasks) {
		w.t.Fatal("a task stands in two places")
	}
	if c := s.current; c != nil && c.phase == running && s.slot == nil {
		for l := topLevel; l > 0; l-- {
			for h := range s.levels[l].all() {
				if ok, left := s.mayPreempt(h); ok && !w.due("rearm") {
					w.t.Fatalf("%s runs at %d while %s waits at %d, %s of cooldown", c.id(), effective(c), h.id(), effective(h), left)
				}
			}
		}
	}
	if len(s.stack) > maxDepth && s.counters.Anomalies == 0 {
		w.t.Fatalf("the stack is %d deep", len(s.stack))
	}
}

// due tells whether a timer has run down and is not heard yet.
func (w *world) due(key string) bool {
	t, ok := w.timers[key]
	return ok && !t.due.After(w.now)
}

// drain lets everything end.
func (w *world) drain() {
	w.t.Helper()
	w.refuse = 0
	for range 20000 {
		w.settle()
		w.decide()
		w.answer()
		w.settle()
		if len(w.m.tasks) == 0 && len(w.pending) == 0 {
			break
		}
		w.pass(100 * time.Millisecond)
	}
	for _, id := range sortedKeys(w.ledger.tasks) {
		if w.ledger.tasks[id].end == nil {
			w.t.Fatalf("%s never ended: %v; %+v; current %+v", id, w.changes[id], w.m.tasks[id], w.m.current)
		}
	}
}

// random makes an input of chance.
func (w *world) random(n int) *messages.Input {
	in := input(fmt.Sprintf("i%03d", n), int32(w.rng.IntN(5)), fmt.Sprintf("text %d", w.rng.IntN(40)), mode(messages.Mode(1+w.rng.IntN(3))))
	in.CreatedUs = w.now.UnixMicro()
	in.Conversation = []string{"c", "d"}[w.rng.IntN(2)]
	in.Principal.Id = []string{"owner", "guest"}[w.rng.IntN(2)]
	in.Joint = w.rng.IntN(4) == 0
	if w.rng.IntN(6) == 0 {
		in.DeadlineUs = w.now.Add(time.Duration(w.rng.IntN(4000)-200) * time.Millisecond).UnixMicro()
	}
	return in
}

// chance does one thing that people, turns, the disk or the power may do.
func (w *world) chance() {
	switch w.rng.IntN(16) {
	case 0:
		w.stop([]string{"", "c"}[w.rng.IntN(2)], fmt.Sprintf("stop%d", w.rng.Uint64()))
	case 1:
		if t := w.active(); t != nil {
			w.ledger.tasks[t.id].result = w.rng.IntN(2) == 0
			w.kill(t.at, "panic")
		}
	case 2, 3:
		w.park()
	case 4, 5:
		w.decide()
	case 6, 7:
		w.editAny()
	case 8:
		if w.rng.IntN(3) == 0 {
			if t := w.active(); t != nil {
				w.ledger.tasks[t.id].result = w.rng.IntN(2) == 0
			}
			w.boot()
		}
	default:
		if t := w.active(); t != nil && len(t.took) > 0 && w.rng.IntN(2) == 0 {
			w.finish(t, &messages.Finished{End: messages.End_END_FAILED, Reason: "no_source", Steered: t.took[:1], Unanswered: t.took[1:]})
			return
		}
		w.answer()
	}
}

func (w *world) editAny() {
	var ids []string
	for l := range w.m.levels {
		for t := range w.m.levels[l].all() {
			ids = append(ids, t.id())
		}
	}
	ids = append(ids, sortedKeys(w.m.parked)...)
	if len(ids) == 0 {
		return
	}
	w.edit(ids[w.rng.IntN(len(ids))], &messages.EditQueue{
		Edit: messages.QueueEdit(1 + w.rng.IntN(4)), Text: fmt.Sprintf("text %d", w.rng.IntN(40)), Level: int32(w.rng.IntN(4)),
	})
}

func TestSeededWorld(t *testing.T) {
	seeds := uint64(400)
	if testing.Short() {
		seeds = 50
	}
	ends := map[string]int{}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newWorld(t, seed)
			w.refuse = 10
			total := 0
			for i := range 300 {
				w.pass(time.Duration(w.rng.IntN(500)) * time.Millisecond)
				switch w.rng.IntN(7) {
				case 0, 1:
					total++
					w.offer(w.random(i))
				case 2, 3, 4:
					w.deliver()
				default:
					w.chance()
				}
			}
			w.drain()
			if total == 0 || len(w.ledger.tasks) != total {
				t.Fatalf("%d inputs, %d tasks", total, len(w.ledger.tasks))
			}
			for _, x := range w.ledger.tasks {
				ends[endName(x.end.GetEnd())+" "+x.end.GetReason()]++
			}
		})
	}
	for _, want := range []string{"answered ok", "stopped stop", "stopped cancelled", "expired deadline", "duplicate repeated", "failed crash_loop", "failed no_source"} {
		if ends[want] == 0 {
			t.Errorf("no task ended as %s: %v", want, ends)
		}
	}
}

// has tells whether the changes of a task hold these in this order.
func (w *world) has(id string, want ...string) bool {
	return strings.Contains(" "+strings.Join(w.changes[id], " ")+" ", " "+strings.Join(want, " ")+" ")
}
