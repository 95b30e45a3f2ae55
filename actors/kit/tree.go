package kit

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"homeagent/messages"
)

// Tree shows all actors, nested as they supervise each other; a top-level actor whose path begins with another one's is
// shown below that, such as "memory/graph" below "memory". The root's path is empty. A path segment without an actor of
// its own, such as "turn" in "agents/main/turn/01J…", makes no node: the actor stands directly below its parent.
func (rt *Runtime) Tree() *messages.ActorInfo {
	now := rt.now()
	cells := rt.table.all()
	infos := make(map[*cell]*messages.ActorInfo, len(cells))
	for _, c := range cells {
		if !c.is(gone) {
			infos[c] = c.info(now)
		}
	}
	root := infos[rt.root]
	if root == nil {
		return rt.root.info(now) // after the end
	}
	for c, info := range infos {
		if c == rt.root {
			continue
		}
		// A parent may have left the table an instant before: then its children hang where there is somebody.
		parent := c.parent
		for infos[parent] == nil {
			parent = parent.parent
		}
		if parent == rt.root {
			parent = rt.above(c, infos)
		}
		infos[parent].Children = append(infos[parent].Children, info)
	}
	for _, info := range infos {
		slices.SortFunc(info.Children, func(a, b *messages.ActorInfo) int { return strings.Compare(a.Path, b.Path) })
	}
	return root
}

// above is where a top-level actor is shown: below the actor whose path begins its own, such as "memory" for
// "memory/graph", although the root supervises both.
func (rt *Runtime) above(c *cell, infos map[*cell]*messages.ActorInfo) *cell {
	path := c.path()
	for {
		cut := strings.LastIndexByte(path, '/')
		if cut < 0 {
			return rt.root
		}
		path = path[:cut]
		if p := rt.get(path); p != nil && infos[p] != nil {
			return p
		}
	}
}

// Actor shows one actor without its children.
func (rt *Runtime) Actor(path string) (*messages.ActorInfo, bool) {
	c := rt.get(path)
	if c == nil {
		return nil, false
	}
	return c.info(rt.now()), true
}

// info reads the figures. They are read one after the other while the actor works on, so they need not fit exactly.
func (c *cell) info(now time.Time) *messages.ActorInfo {
	info := &messages.ActorInfo{
		Path: c.path(), Kind: c.row.kind, Node: c.self.Node, State: c.word(), SinceUs: c.since.Load(),
		MailboxUser: int64(c.Mailbox.UserMessageCount()), MailboxControl: int64(c.control.Load()),
		Handled: c.handled.Load(), MeanUs: float64(math.Float32frombits(c.mean.Load())),
		Restarts: uint64(c.restarts.Load()), System: c.row.system, Refused: uint64(c.refused.Load()),
	}
	if f := c.failure.Load(); f != nil {
		info.LastFailure = *f
	}
	if s := c.shown.Load(); s != nil {
		info.Summary = s.summary
	}
	t := c.track.Load()
	if t == nil {
		return info // idle for a while
	}
	info.Rate = t.rateAt(now)
	if at := t.oldest.Load(); at != 0 && info.MailboxUser > 0 {
		info.OldestMs = max(0, now.Sub(time.UnixMicro(at)).Milliseconds())
	}
	if c.running.Load() > 0 {
		info.Current = c.current()
		if at := t.busySince.Load(); at != 0 {
			info.CurrentMs = max(0, now.Sub(time.UnixMicro(at)).Milliseconds())
		}
	}
	return info
}

// word is the state as people see it: the machine's own word while the actor simply runs.
func (c *cell) word() string {
	phase := c.phase.Load()
	if phase == phaseRunning {
		if s := c.shown.Load(); s != nil && s.word != "" {
			return s.word
		}
	}
	return phaseWords[phase]
}

// inside is what Inspect shows: the machine's own state, and what its shell holds.
type inside struct {
	Machine  any                 `json:"machine,omitempty"`
	Timers   map[string]string   `json:"timers,omitempty"`  // key to time left
	Workers  map[string][]string `json:"workers,omitempty"` // key to running times
	Watching []string            `json:"watching,omitempty"`
	Children []string            `json:"children,omitempty"`
}

// inspect answers Inspect for the machine.
func (c *cell) inspect(m *envelope) {
	text, err := c.look()
	if err != nil {
		c.respond(m, &messages.Error{Code: CodeBroken, Message: fmt.Sprintf("%q cannot show its state: %v", c.path(), err)})
		return
	}
	c.respond(m, &messages.Inspected{StateJson: text})
}

// look makes the JSON of inside. Showing must not end an actor, so a panic in Show is an answer.
func (c *cell) look() (text []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	var in inside
	sh := c.sh
	if s, ok := sh.machine.(Shower); ok {
		in.Machine = s.Show()
	}
	h, now := sh.held(), c.rt.now()
	for key, t := range h.timers {
		in.Timers = put(in.Timers, key, t.due.Sub(now).Round(time.Millisecond).String())
	}
	for key, list := range h.workers {
		for _, w := range list {
			in.Workers = put(in.Workers, key, append(in.Workers[key], now.Sub(w.started).Round(time.Millisecond).String()))
		}
	}
	for w := range h.watching {
		in.Watching = append(in.Watching, w.path())
	}
	for _, kid := range c.children() {
		if !kid.is(gone) {
			in.Children = append(in.Children, kid.name())
		}
	}
	slices.Sort(in.Watching)
	slices.Sort(in.Children)
	return json.Marshal(in)
}

func put[V any](m map[string]V, key string, v V) map[string]V {
	if m == nil {
		m = make(map[string]V)
	}
	m[key] = v
	return m
}
