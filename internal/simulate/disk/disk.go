package disk

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/memory/contextmem"
	"homeagent/memory/ledger"
	"homeagent/memory/store"
	"homeagent/messages"
)

// Disk is the store of one simulated node. It outlives the node and belongs to one goroutine.
type Disk struct {
	inbox   map[uint64]*messages.InboxRecord
	tasks   map[string]*messages.TaskRecord
	open    map[uint64]string
	keys    map[string]*messages.KeyRecord
	journal map[string][]*messages.JournalEntry
	outputs map[string]*messages.OutputRecord
	unsent  map[string]bool
	events  map[string][]*messages.EventRecord // by agent, in the order of their ids
	agents  map[string]*messages.AgentSpec
	stops   map[string][]*messages.StopMoment
	raw     map[string][]byte
	count   counters

	log   []txn // written and not synced
	undo  []func()
	syncs uint64

	// Faults, set by the world.

	// Low refuses every write for want of room.
	Low bool
	// FailSync makes the next sync fail; the store is broken until the node is started anew.
	FailSync bool
	broken   bool
	// CutIn counts down the transactions until power is cut while one is being written; zero means never.
	CutIn int
	// Cut is called when that happens.
	Cut func()
	// Took is called for each request that will not come again: all but steps that found no room; nil means that nobody asks.
	Took func(r *messages.LedgerExecute)
	// Forget makes syncs do nothing: a disk that lies. Only for testing the tests.
	Forget bool
}

type counters struct {
	inbox, journal, accepted, ended, events uint64
}

// txn is how to take a transaction back.
type txn struct{ undo []func() }

// New makes an empty disk.
func New() *Disk {
	return &Disk{
		inbox: map[uint64]*messages.InboxRecord{}, tasks: map[string]*messages.TaskRecord{}, open: map[uint64]string{},
		keys: map[string]*messages.KeyRecord{}, journal: map[string][]*messages.JournalEntry{},
		outputs: map[string]*messages.OutputRecord{}, unsent: map[string]bool{}, events: map[string][]*messages.EventRecord{},
		agents: map[string]*messages.AgentSpec{}, raw: map[string][]byte{}, stops: map[string][]*messages.StopMoment{},
	}
}

// put sets a key and notes how to take it back.
func put[K comparable, V any](d *Disk, m map[K]V, k K, v V) {
	old, had := m[k]
	d.undo = append(d.undo, func() {
		if had {
			m[k] = old
		} else {
			delete(m, k)
		}
	})
	m[k] = v
}

func drop[K comparable, V any](d *Disk, m map[K]V, k K) {
	old, had := m[k]
	if !had {
		return
	}
	d.undo = append(d.undo, func() { m[k] = old })
	delete(m, k)
}

func rollback(undo []func()) {
	for i := len(undo) - 1; i >= 0; i-- {
		undo[i]()
	}
}

// PowerCut loses what was not synced, but for a number of transactions that rng chooses.
func (d *Disk) PowerCut(rng *rand.Rand) {
	kept := 0
	if n := len(d.log); n > 0 {
		kept = rng.IntN(n + 1)
	}
	for i := len(d.log) - 1; i >= kept; i-- {
		rollback(d.log[i].undo)
	}
	d.log = nil
	d.Reopen()
}

// Reopen is a new start over what is there. What was written and not synced is with the system still.
func (d *Disk) Reopen() { d.broken, d.FailSync, d.CutIn = false, false, 0 }

// Close is the end of an orderly stop: all of it is synced.
func (d *Disk) Close() {
	d.log = nil
	d.Reopen()
}

// Broken tells that a sync has failed and the store takes nothing more.
func (d *Disk) Broken() bool { return d.broken }

// Execute implements the ledger's Engine.
func (d *Disk) Execute(now time.Time, requests []*messages.LedgerExecute) []*messages.LedgerDone {
	out := make([]*messages.LedgerDone, len(requests))
	wants := make([]bool, len(requests))
	sync := false
	var low error
	for i, r := range requests {
		if low != nil && !accepts(r) {
			out[i] = &messages.LedgerDone{Error: ledger.Fault(low)}
			continue
		}
		results, err := d.run(now, r.GetOps())
		if d.Took != nil && (accepts(r) || !errors.Is(err, store.ErrDiskLow)) {
			d.Took(r)
		}
		if err != nil {
			if errors.Is(err, store.ErrDiskLow) {
				low = err
			}
			out[i] = &messages.LedgerDone{Error: ledger.Fault(err)}
			continue
		}
		if d.cut() {
			return out
		}
		out[i] = &messages.LedgerDone{Results: results}
		wants[i] = r.GetSync() || accepts(r)
		sync = sync || wants[i]
	}
	if !sync {
		return out
	}
	if err := d.sync(); err != nil {
		for i, w := range wants {
			if w {
				out[i] = &messages.LedgerDone{Error: ledger.Fault(err)}
			}
		}
	}
	return out
}

// cut cuts the power if it is time.
func (d *Disk) cut() bool {
	if d.CutIn == 0 {
		return false
	}
	d.CutIn--
	if d.CutIn > 0 {
		return false
	}
	d.Cut()
	return true
}

func (d *Disk) sync() error {
	switch {
	case d.broken:
		return store.ErrBroken
	case d.FailSync:
		d.broken = true
		return fmt.Errorf("%w: on purpose", store.ErrBroken)
	case d.Forget:
		return nil
	}
	d.log = d.log[:0]
	d.syncs++
	return nil
}

func accepts(r *messages.LedgerExecute) bool {
	for _, op := range r.GetOps() {
		if op.GetAccept() != nil {
			return true
		}
	}
	return false
}

// run executes one request as one transaction.
func (d *Disk) run(now time.Time, ops []*messages.LedgerOp) ([]*messages.LedgerResult, error) {
	d.undo = nil
	count := d.count
	results := make([]*messages.LedgerResult, len(ops))
	for i, op := range ops {
		r, err := d.apply(now, op)
		if err != nil {
			d.count = count
			rollback(d.undo)
			return nil, fmt.Errorf("operation %d: %w", i+1, err)
		}
		results[i] = r
	}
	if len(d.undo) == 0 && d.count == count {
		return results, nil
	}
	var err error
	switch {
	case d.broken:
		err = store.ErrBroken
	case d.Low:
		err = store.ErrDiskLow
	}
	if err != nil {
		d.count = count
		rollback(d.undo)
		return nil, err
	}
	d.undo = append(d.undo, func() { d.count = count })
	d.log = append(d.log, txn{d.undo})
	return results, nil
}

// Pending implements the ledger's Engine.
func (d *Disk) Pending(q *messages.LedgerPending) (*messages.PendingTasks, error) {
	out := &messages.PendingTasks{}
	for _, seq := range sorted(d.open) {
		id := d.open[seq]
		if q.GetTaskId() != "" && q.GetTaskId() != id {
			continue
		}
		t := d.tasks[id]
		if q.GetAgent() != "" && q.GetAgent() != t.GetAgent() {
			continue
		}
		out.Tasks = append(out.Tasks, &messages.PendingTask{
			Input: d.inbox[seq].GetInput(), Sequence: seq, State: t.GetState(), Starts: vainStarts(t),
			Preempted: t.GetPreempted(), Joined: t.GetJoined(), Journal: slices.Clone(d.journal[id]),
		})
	}
	if q.GetTaskId() != "" {
		return out, nil
	}
	for _, id := range sorted(d.unsent) {
		o := d.outputs[id].GetIntent()
		if q.GetAgent() == "" || agentOr(o.GetAgent()) == q.GetAgent() {
			out.Unsent = append(out.Unsent, o)
		}
	}
	for _, a := range sorted(d.agents) {
		if q.GetAgent() == "" || d.agents[a].GetParent() == q.GetAgent() {
			out.Agents = append(out.Agents, d.agents[a])
		}
	}
	out.Stops = d.stops[agentOr(q.GetAgent())]
	return out, nil
}

// vainStarts is how many starts there were since the last result.
func vainStarts(t *messages.TaskRecord) int32 {
	if t.GetResult() > t.GetStartedAt() {
		return 0
	}
	return t.GetStarts()
}

func sorted[K uint64 | string, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// Task implements the ledger's Engine.
func (d *Disk) Task(id string) (*messages.TaskStatus, error) {
	t, err := d.task(id)
	if err != nil {
		return nil, err
	}
	in := d.inbox[t.GetSequence()]
	return &messages.TaskStatus{
		Input: in.GetInput(), State: t.GetState(), End: t.GetEnd(), Reason: t.GetReason(), Text: t.GetText(), By: t.GetBy(),
		AcceptedUs: in.GetAcceptedUs(), EndedUs: t.GetEndedUs(), Starts: t.GetStarts(), Preempted: t.GetPreempted(), Usage: t.GetUsage(),
	}, nil
}

// Figures implements the ledger's Engine.
func (d *Disk) Figures() *messages.LedgerFigures {
	return &messages.LedgerFigures{
		Open: int64(d.count.accepted - d.count.ended), Accepted: d.count.accepted, Ended: d.count.ended,
		DiskLow: d.Low, Syncs: d.syncs,
	}
}

// Last is the engine of the context: the latest events of a window, oldest first.
func (d *Disk) Last(w contextmem.Window) ([]*messages.EventRecord, error) {
	var out []*messages.EventRecord
	tokens, list := 0, d.events[w.Agent]
	for i := len(list) - 1; i >= 0; i-- {
		e := list[i].GetEvent()
		if w.Conversation != "" && e.GetConversation() != w.Conversation ||
			w.Before != "" && e.GetEventId() >= w.Before || w.After != "" && e.GetEventId() <= w.After {
			continue
		}
		tokens += contextmem.EstimateEvent(e)
		if w.Tokens > 0 && tokens > w.Tokens && len(out) > 0 {
			break
		}
		out = append(out, list[i])
		if w.Events > 0 && len(out) >= w.Events {
			break
		}
	}
	slices.Reverse(out)
	return out, nil
}

// Tasks lists all inputs ever accepted, in order.
func (d *Disk) Tasks() []*messages.InboxRecord {
	var out []*messages.InboxRecord
	for _, seq := range sorted(d.inbox) {
		out = append(out, d.inbox[seq])
	}
	return out
}

// Record is what is kept of a task, or nil.
func (d *Disk) Record(id string) *messages.TaskRecord { return d.tasks[id] }

// Open is how many tasks have not ended.
func (d *Disk) Open() int { return len(d.open) }

// Outputs lists the intended outputs with their receipts.
func (d *Disk) Outputs() []*messages.OutputRecord {
	var out []*messages.OutputRecord
	for _, id := range sorted(d.outputs) {
		out = append(out, d.outputs[id])
	}
	return out
}

// Raw lists the raw records of a space in the order of their keys, each with its full key.
func (d *Disk) Raw(space store.Space) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for _, k := range sorted(d.raw) {
			if k[0] == byte(space) && !yield([]byte(k), d.raw[k]) {
				return
			}
		}
	}
}

// Events lists the events of an agent in the order of their ids.
func (d *Disk) Events(agent string) []*messages.EventRecord { return d.events[agent] }

// Check compares what must agree: sequences without holes, the list of open tasks, journals without holes.
func (d *Disk) Check() error {
	if uint64(len(d.inbox)) != d.count.inbox {
		return fmt.Errorf("the inbox holds %d inputs, its last sequence is %d", len(d.inbox), d.count.inbox)
	}
	if n := d.count.accepted - d.count.ended; uint64(len(d.open)) != n {
		return fmt.Errorf("%d tasks are open, %d by the counters", len(d.open), n)
	}
	for seq, id := range d.open {
		t := d.tasks[id]
		if t.GetSequence() != seq || t.GetState() == messages.TaskState_TASK_STATE_ENDED {
			return fmt.Errorf("task %s is open in the list and %s in its record", id, t.GetState())
		}
		if uint64(len(d.journal[id])) != t.GetJournal() {
			return fmt.Errorf("the journal of %s has %d entries, its record says %d", id, len(d.journal[id]), t.GetJournal())
		}
		for i, e := range d.journal[id] {
			if e.GetSequence() != uint64(i+1) {
				return fmt.Errorf("entry %d of the journal of %s has sequence %d", i+1, id, e.GetSequence())
			}
		}
	}
	return nil
}

func agentOr(agent string) string {
	if agent == "" {
		return "main"
	}
	return agent
}

const maxID = 200

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ledger.ErrInvalid, fmt.Sprintf(format, args...))
}

func checkID(what, id string) error {
	if id == "" || len(id) > maxID || strings.IndexByte(id, 0) >= 0 {
		return invalid("%s %q", what, id)
	}
	return nil
}

// insert puts an event in the order of ids.
func insert(list []*messages.EventRecord, r *messages.EventRecord) []*messages.EventRecord {
	id := r.GetEvent().GetEventId()
	i := sort.Search(len(list), func(i int) bool { return list[i].GetEvent().GetEventId() >= id })
	return slices.Insert(slices.Clone(list), i, r)
}

func has(list []*messages.EventRecord, id string) bool {
	i := sort.Search(len(list), func(i int) bool { return list[i].GetEvent().GetEventId() >= id })
	return i < len(list) && list[i].GetEvent().GetEventId() == id
}

func clone[M proto.Message](m M) M { return proto.CloneOf(m) }
