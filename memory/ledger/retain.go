package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"homeagent/memory/store"
	"homeagent/messages"
)

// Policy says how long what has ended is kept and how large the store may become. A
// time of zero means for ever.
type Policy struct {
	// Journal is how long the journal of an ended task stays after its end.
	Journal time.Duration
	// Tasks is how long an ended task stays with its input and result; it is at least
	// Keys.
	Tasks time.Duration
	// Keys is how long an idempotency key is known after its input was accepted.
	Keys time.Duration
	// Outputs is how long an output stays after it was sent.
	Outputs time.Duration
	// Aside is how long the record and journal of a crash loop stay.
	Aside time.Duration
	// Budget is the most bytes the store should occupy; zero means no limit.
	Budget int64
}

// Removed counts what retention removed since the start of the process.
type Removed struct {
	Journals, Tasks, Keys, Outputs, Asides, Payloads uint64
}

// keeper is what retention and upkeep remember; the ledger's mu guards policy,
// pressure, full and what the figures show, the rest belongs to Retain.
type keeper struct {
	policy   Policy
	pressure int
	full     *messages.Error
	removed  Removed
	sizes    map[store.Space]int64
	looked   time.Time
	damage   []string

	// walked is the last inbox sequence that was looked at, skipped are those before
	// it that could not go yet.
	walked  uint64
	skipped []uint64
	// sweep is where the search for payloads without a block goes on; swept is when
	// it last came to its end.
	sweep string
	swept time.Time

	// busy belongs to Upkeep: what it did when.
	measured, verified time.Time
	shrunk             Removed
}

// SetPolicy changes the policy from the next pass on; any goroutine. Before the first
// call nothing is ever removed.
func (l *Ledger) SetPolicy(p Policy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep.policy = p
}

// refusal is what an input is told while the store is over its budget, nil otherwise.
func (l *Ledger) refusal() *messages.Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keep.full
}

// Least times under pressure: results must be fetchable for a while, and a key must
// outlive the retries of its sender and the slots of a timer.
const (
	leastKept = time.Hour
	leastKeys = 24 * time.Hour
)

// cutoffs are the moments, in Unix microseconds, before which things go.
type cutoffs struct{ journal, tasks, keys, outputs, aside int64 }

func (p Policy) cutoffs(now time.Time, pressure int) cutoffs {
	at := func(d, least time.Duration) int64 {
		if d <= 0 {
			return math.MinInt64
		}
		return now.Add(-max(d>>pressure, min(d, least))).UnixMicro()
	}
	c := cutoffs{
		journal: at(p.Journal, leastKept), tasks: at(p.Tasks, leastKept), keys: at(p.Keys, leastKeys),
		outputs: at(p.Outputs, leastKept), aside: at(p.Aside, leastKept),
	}
	c.tasks = min(c.tasks, c.keys)
	return c
}

// passWrites bounds the writes of one pass, passLooks the records it reads in vain.
const (
	passWrites = 512
	passLooks  = 2048
)

// Retain removes some of what has ended and is too old, in one small transaction, and
// tells whether there may be more. It must not run beside Execute: the one who calls
// that calls this too.
func (l *Ledger) Retain(now time.Time) (more bool, err error) {
	l.mu.Lock()
	policy, pressure := l.keep.policy, l.keep.pressure
	l.mu.Unlock()
	p := &pass{
		cut: policy.cutoffs(now, pressure), count: l.count, writes: map[string][]byte{},
		walked: l.keep.walked, skipped: l.keep.skipped,
	}
	err = l.db.View(func(txn store.Txn) error {
		p.txn = txn
		for _, step := range []func() error{p.asides, p.outputs, p.keys, p.tasks, p.journals} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	if err := l.applyPass(p); err != nil {
		return false, err
	}
	if p.more {
		return true, nil
	}
	return l.sweep(now)
}

func (l *Ledger) applyPass(p *pass) error {
	if len(p.writes) > 0 || p.count != l.count {
		err := l.db.Reclaim(func(txn store.Txn) error {
			for key, value := range p.writes {
				var err error
				if value == nil {
					err = txn.Delete([]byte(key))
				} else {
					err = txn.Put([]byte(key), value)
				}
				if err != nil {
					return err
				}
			}
			return txn.Put(countersKey, p.count.encode())
		})
		if err != nil {
			return err
		}
	}
	l.keep.walked, l.keep.skipped = p.walked, p.skipped
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count = p.count
	r := &l.keep.removed
	r.Journals += p.removed.Journals
	r.Tasks += p.removed.Tasks
	r.Keys += p.removed.Keys
	r.Outputs += p.removed.Outputs
	r.Asides += p.removed.Asides
	return nil
}

// pass gathers the writes of one pass from a snapshot; nobody else writes meanwhile.
type pass struct {
	txn     store.Txn
	cut     cutoffs
	count   counters
	writes  map[string][]byte // nil deletes
	looks   int
	more    bool
	removed Removed
	walked  uint64
	skipped []uint64
}

// enough ends a step when the pass has enough to do.
func (p *pass) enough() bool {
	if len(p.writes) >= passWrites || p.looks >= passLooks {
		p.more = true
	}
	return p.more
}

func (p *pass) remove(key []byte) { p.writes[string(key)] = nil }

// present is written for a key whose value is empty: nil would delete it.
var present = []byte{}

// listed walks a list by time up to a moment. The mark is followed by the time in
// eight bytes and an id.
func (p *pass) listed(space store.Space, mark []byte, cut int64, do func(key []byte, id string) error) error {
	var keys [][]byte
	for item, err := range p.txn.Scan(store.Range{Space: space, Prefix: mark, Limit: passWrites}) {
		if err != nil {
			return err
		}
		key := item.Key()[len(mark):]
		if len(key) < 9 || int64(binary.BigEndian.Uint64(key)) >= cut {
			break
		}
		keys = append(keys, bytes.Clone(item.FullKey()))
	}
	for _, key := range keys {
		if p.enough() {
			return nil
		}
		if err := do(key, string(key[1+len(mark)+8:])); err != nil {
			return err
		}
	}
	if len(keys) == passWrites {
		p.more = true
	}
	return nil
}

// journals removes journals of ended tasks, a long one in several passes.
func (p *pass) journals() error {
	return p.listed(store.Journal, listMark, p.cut.journal, func(key []byte, id string) error {
		room := passWrites - len(p.writes)
		entries, err := journalKeys(p.txn, id, room)
		if err != nil {
			return err
		}
		for _, e := range entries {
			p.remove(e)
		}
		if len(entries) == room {
			p.more = true // and the list keeps it
			return nil
		}
		p.remove(key)
		p.removed.Journals++
		return nil
	})
}

func (p *pass) outputs() error {
	return p.listed(store.Output, sentMark, p.cut.outputs, func(key []byte, id string) error {
		p.remove(key)
		p.remove(outputKey(id))
		p.removed.Outputs++
		return nil
	})
}

// asides hands the journals of old crash loops to the list of journals. There are
// few of them.
func (p *pass) asides() error {
	for item, err := range p.txn.Scan(store.Range{Space: store.Aside}) {
		if err != nil {
			return err
		}
		if p.enough() {
			return nil
		}
		record, err := item.Value()
		if err != nil {
			return err
		}
		a := &messages.AsideRecord{}
		if err := store.DecodeRecord(version, item.FullKey(), record, a); err != nil {
			return err
		}
		if a.GetAtUs() < p.cut.aside {
			p.remove(item.FullKey())
			p.writes[string(endedKey(a.GetAtUs(), string(item.Key())))] = present
			p.removed.Asides++
		}
	}
	return nil
}

// keys removes the idempotency keys of old inputs that have ended. The key of one
// that has not goes with its task.
func (p *pass) keys() error {
	for p.count.keys = max(p.count.keys, p.count.floor); p.count.keys < p.count.inbox; p.count.keys++ {
		if p.enough() {
			return nil
		}
		p.looks++
		in, err := inbox(p.txn, p.count.keys+1)
		if err != nil {
			return err
		}
		if in.GetInput() == nil {
			continue
		}
		if in.GetAcceptedUs() >= p.cut.keys {
			return nil
		}
		if in.GetInput().GetIdempotencyKey() == "" {
			continue
		}
		t, err := readTask(p.txn, in.GetInput().GetId())
		if err != nil {
			return err
		}
		if t.GetState() != messages.TaskState_TASK_STATE_ENDED {
			continue
		}
		if err := p.removeKey(in); err != nil {
			return err
		}
	}
	return nil
}

// removeKey removes the key of an input unless it belongs to another one by now.
func (p *pass) removeKey(in *messages.InboxRecord) error {
	if in.GetInput().GetIdempotencyKey() == "" {
		return nil
	}
	key := idempotencyKey(in.GetInput())
	if _, done := p.writes[string(key)]; done {
		return nil
	}
	record := &messages.KeyRecord{}
	err := p.txn.GetRecord(version, key, record)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil || record.GetSequence() != in.GetSequence() {
		return err
	}
	p.remove(key)
	p.removed.Keys++
	return nil
}

// tasks removes ended tasks with their inputs. It walks the inbox, which is in the
// order of acceptance; what cannot go when the walk comes by is looked at again.
func (p *pass) tasks() error {
	if err := p.advance(); err != nil {
		return err
	}
	again := p.skipped
	p.skipped = nil
	for i, n := range again {
		if p.enough() || i == passWrites/2 {
			// Those not looked at come first the next time.
			p.skipped = append(append([]uint64{}, again[i:]...), p.skipped...)
			break
		}
		old, err := p.task(n)
		if err != nil {
			return err
		}
		if !old { // the times have become longer
			p.skipped = append(p.skipped, n)
		}
	}
	for p.walked = max(p.walked, p.count.floor); p.walked < p.count.inbox; p.walked++ {
		if p.enough() {
			return nil
		}
		p.looks++
		old, err := p.task(p.walked + 1)
		if err != nil || !old {
			return err
		}
	}
	return nil
}

// task removes the input of a sequence if its task ended long ago, else remembers it;
// old is false when it is too young, and so is all that follows.
func (p *pass) task(n uint64) (old bool, err error) {
	in, err := inbox(p.txn, n)
	if err != nil {
		return false, err
	}
	if in.GetInput() == nil {
		return true, nil
	}
	if in.GetAcceptedUs() >= p.cut.tasks {
		return false, nil
	}
	id := in.GetInput().GetId()
	t, err := readTask(p.txn, id)
	if err != nil && !errors.Is(err, ErrUnknownTask) { // a salvage may have lost it
		return false, err
	}
	if err == nil && (t.GetState() != messages.TaskState_TASK_STATE_ENDED || t.GetEndedUs() >= p.cut.tasks) {
		p.skipped = append(p.skipped, n)
		return true, nil
	}
	if err := p.removeKey(in); err != nil {
		return false, err
	}
	p.remove(taskKey(id))
	p.removed.Tasks++
	key := inboxKey(n)
	empty, err := store.EncodeRecord(version, key, &messages.InboxRecord{Sequence: n})
	if err != nil {
		return false, err
	}
	p.writes[string(key)] = empty
	return true, p.advance()
}

// advance moves the floor over inputs that are gone.
func (p *pass) advance() error {
	for p.count.floor < p.count.inbox {
		key := inboxKey(p.count.floor + 1)
		_, gone := p.writes[string(key)]
		if !gone {
			in, err := inbox(p.txn, p.count.floor+1)
			if err != nil || in.GetInput() != nil {
				return err
			}
			if p.enough() {
				return nil
			}
		}
		p.remove(key)
		p.count.floor++
	}
	return nil
}
