package host

import (
	"container/heap"
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// AskPath is the path of callers outside of the tree; a Reply to it goes to Observer.Answered.
const AskPath = "$ask"

// Kind makes the Props of one actor from the parameters of its Spawn, which may be nil. Restart, Limits and Kind must be
// filled in.
type Kind func(params proto.Message) (kit.Props, error)

// Observer sees what happens. Every field may be nil.
type Observer struct {
	// Stepping is called before each event of a machine, Stepped after it with the effects, before they are performed.
	Stepping func(path, kind string, e kit.Event)
	Stepped  func(path, kind string, m kit.Machine, e kit.Event, effects []kit.Effect)
	// Published gets the events that actors publish; they go nowhere else.
	Published func(from string, e *messages.AgentEvent)
	// Answered gets replies to callers outside of the tree.
	Answered func(corr string, m proto.Message)
	// Ready, Restarted and Ended tell of the life of actors. Ended has the failure of one that was given up.
	Ready     func(path string)
	Restarted func(path, failure string)
	Ended     func(path, failure string)
	// Panicked tells of a panic that was not asked for by Fail.
	Panicked func(path string, reason any, stack []byte)
}

// Options of a Host.
type Options struct {
	// Rand chooses; the Host owns it.
	Rand *rand.Rand
	// Now is the time at the start, Epoch that of the boot.
	Now   time.Time
	Epoch uint64
	// Kinds are the kinds that Spawn knows.
	Kinds map[string]Kind
	// Observe sees what happens.
	Observe Observer
	// Wrap may replace a machine; nil means that none is.
	Wrap func(kind string, m kit.Machine) kit.Machine
}

// node is the name of the simulated node.
const node = "sim"

// Host is the actor world of one node between two crashes. It belongs to one goroutine.
type Host struct {
	opt     Options
	rng     *rand.Rand
	now     time.Time
	obs     *Observer
	cells   map[string]*cell
	ready   []*cell // those with something to do
	agenda  agenda
	order   uint64
	steps   uint64
	fates   map[string]string
	lagging *cell
	lagEnds uint64
	gone    bool
}

// New makes an empty world.
func New(opt Options) *Host {
	h := &Host{opt: opt, rng: opt.Rand, now: opt.Now, cells: map[string]*cell{}, fates: map[string]string{}}
	h.obs = &h.opt.Observe
	return h
}

// Now is the virtual time.
func (h *Host) Now() time.Time { return h.now }

// Steps counts the events that machines were given.
func (h *Host) Steps() uint64 { return h.steps }

// Idle tells that no actor has anything to do now.
func (h *Host) Idle() bool { return len(h.ready) == 0 }

// entry is something that happens at a time: a timer, the end of a worker, a restart.
type entry struct {
	at    time.Time
	order uint64
	do    func()
	dead  bool
}

type agenda []*entry

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	if a[i].at.Equal(a[j].at) {
		return a[i].order < a[j].order
	}
	return a[i].at.Before(a[j].at)
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(*entry)) }
func (a *agenda) Pop() any {
	old := *a
	e := old[len(old)-1]
	*a = old[:len(old)-1]
	return e
}

func (h *Host) at(t time.Time, do func()) *entry {
	h.order++
	e := &entry{at: t, order: h.order, do: do}
	heap.Push(&h.agenda, e)

	return e
}

func (h *Host) drop(e *entry) { e.dead = true }

// Next is when the next timer or worker is due; false when there is none.
func (h *Host) Next() (time.Time, bool) {
	for len(h.agenda) > 0 && h.agenda[0].dead {
		heap.Pop(&h.agenda)
	}
	if len(h.agenda) == 0 {
		return time.Time{}, false
	}
	return h.agenda[0].at, true
}

// Advance moves the time on to t and lets everything happen that is due by then.
func (h *Host) Advance(t time.Time) {
	for {
		at, ok := h.Next()
		if !ok || at.After(t) {
			break
		}
		e := heap.Pop(&h.agenda).(*entry)
		e.dead = true

		if at.After(h.now) {
			h.now = at
		}
		e.do()
		if h.gone {
			return
		}
	}
	if t.After(h.now) {
		h.now = t
	}
}

// Step lets one actor handle the next item of its mailbox; false when no actor has any. It takes a little time.
func (h *Host) Step() bool {
	if len(h.ready) == 0 {
		return false
	}
	h.Advance(h.now.Add(time.Duration(1+h.rng.IntN(40)) * time.Microsecond))
	if len(h.ready) == 0 {
		return !h.gone
	}
	c := h.ready[h.rng.IntN(len(h.ready))]
	if h.lagging != nil {
		if h.order > h.lagEnds {
			h.lagging = nil
		} else if c == h.lagging && len(h.ready) > 1 {
			c = h.ready[(c.index+1)%len(h.ready)]
		}
	}
	h.order++
	c.next()
	c.settle()
	return true
}

// Lag lets the actor at path fall behind for about n steps: others go first.
func (h *Host) Lag(path string, n int) {
	if c := h.cells[path]; c != nil {
		h.lagging, h.lagEnds = c, h.order+uint64(n)
	}
}

// Paths lists the living actors in no order that means anything; it is the same for the same run.
func (h *Host) Paths() []string {
	var out []string
	var walk func(list []*cell)
	walk = func(list []*cell) {
		for _, c := range list {
			if !c.gone {
				out = append(out, c.path)
			}
			walk(c.children)
		}
	}
	walk(h.tops())
	return out
}

func (h *Host) tops() []*cell {
	var list []*cell
	for _, c := range h.cells {
		if c.parent == nil {
			list = append(list, c)
		}
	}
	for i := range list { // few, so insertion is fine
		for j := i; j > 0 && list[j].path < list[j-1].path; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
	return list
}

// Alive tells whether an actor lives at path.
func (h *Host) Alive(path string) bool { c := h.cells[path]; return c != nil && !c.gone }

// Machine is the machine at path, or nil; it must only be looked at.
func (h *Host) Machine(path string) kit.Machine {
	if c := h.cells[path]; c != nil && c.sh != nil {
		return c.sh.machine
	}
	return nil
}

// Depth is how many items wait in the user lane of the actor at path.
func (h *Host) Depth(path string) int {
	if c := h.cells[path]; c != nil {
		return c.user.len()
	}
	return 0
}

// Spawn starts an actor at the top of the tree.
func (h *Host) Spawn(name string, props kit.Props) *messages.Error {
	_, err := h.spawn(nil, name, props, false)
	return err
}

// Ask sends a request of a caller outside of the tree; its answer goes to Observer.Answered.
func (h *Host) Ask(path, corr string, m proto.Message) *messages.Error {
	c, err := h.find(kit.Path(path))
	if err != nil {
		return err
	}
	return c.deliver(&messages.Address{Node: node, Path: AskPath, Epoch: h.opt.Epoch}, corr, m)
}

// Notify steps the machine at path with one of the facts of an actor's life.
func (h *Host) Notify(path string, v kit.Restarted) {
	if c := h.cells[path]; c != nil && !c.gone {
		c.pushUser(item{kind: itPrivate, sh: c.sh, msg: v})
	}
}

// Fail makes the actor at path panic at its next event.
func (h *Host) Fail(path string) {
	if c := h.cells[path]; c != nil {
		c.doomed = true
	}
}

// Kill is a person who stops the actor at path.
func (h *Host) Kill(path string) {
	if c := h.cells[path]; c != nil && !c.gone {
		c.byPerson = true
		c.order(false)
	}
}

// Restart is a person who restarts the actor at path.
func (h *Host) Restart(path string) {
	if c := h.cells[path]; c != nil && !c.gone && !c.failed {
		c.pushControl(item{kind: itRestart})
	}
}

// Pause holds the user lane of the actor at path, or lets it go again.
func (h *Host) Pause(path string, hold bool) {
	if c := h.cells[path]; c != nil && !c.gone {
		c.paused = hold
		c.settle()
	}
}

// End ends the actor at path and all below it, level by level from the bottom, each after what is in its mailbox. It is
// called again until it reports true: all of them have ended.
func (h *Host) End(path string) bool {
	var deepest []*cell
	depth := -1
	for _, c := range h.everyone() {
		if c.path != path && !strings.HasPrefix(c.path, path+"/") || !c.under(path) {
			continue
		}
		d := c.depth()
		if d > depth {
			depth, deepest = d, nil
		}
		if d == depth {
			deepest = append(deepest, c)
		}
	}
	for _, c := range deepest {
		if !c.shut || !c.ordered {
			c.shut, c.ordered = true, true
			c.order(!c.paused && !c.failed && !c.restarting)
		}
	}
	return len(deepest) == 0
}

// under tells whether the actor at path is this one or above it.
func (c *cell) under(path string) bool {
	for ; c != nil; c = c.parent {
		if c.path == path {
			return true
		}
	}
	return false
}

func (c *cell) depth() int {
	n := 0
	for p := c.parent; p != nil; p = p.parent {
		n++
	}
	return n
}

// Crash ends the process: nothing goes on and nobody is told. Of the workers under way each takes effect with the chance
// given, and none is heard of.
func (h *Host) Crash(chance float64) {
	for _, e := range h.agenda {
		e.dead = true
	}
	for _, c := range h.everyone() {
		if c.sh == nil {
			continue
		}
		for _, w := range c.sh.workers {
			if !w.done && h.rng.Float64() < chance {
				w.done = true
				w.fn(context.Background(), func(any) {})
			}
		}
	}
	h.cells, h.ready, h.agenda, h.gone = map[string]*cell{}, nil, nil, true
}

// everyone lists all cells in an order that is the same for the same run.
func (h *Host) everyone() []*cell {
	var out []*cell
	var walk func(list []*cell)
	walk = func(list []*cell) {
		for _, c := range list {
			out = append(out, c)
			walk(c.children)
		}
	}
	walk(h.tops())
	return out
}

func (h *Host) find(to *messages.Address) (*cell, *messages.Error) {
	if to == nil {
		return nil, errGone("")
	}
	if to.GetNode() != "" && to.GetNode() != node {
		return nil, &messages.Error{Code: kit.CodeUnreachable, Message: "no way to " + to.GetNode()}
	}
	c := h.cells[to.GetPath()]
	if c == nil || c.gone || to.GetEpoch() != 0 && to.GetEpoch() != h.opt.Epoch {
		return nil, errGone(to.GetPath())
	}
	return c, nil
}

func errGone(path string) *messages.Error {
	return &messages.Error{Code: kit.CodeGone, Message: "no actor \"" + path + "\" is running"}
}

var quiet = slog.New(slog.DiscardHandler)
