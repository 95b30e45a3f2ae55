package timers

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/memory/store"
	engine "homeagent/memory/timers"
	"homeagent/messages"
)

// world is what is around the machine: a clock that the test moves, a ledger with a disk, and channels that accept inputs.
// It dies and starts again as a node does.
type world struct {
	t      testing.TB
	p      Params
	now    time.Time
	m      kit.Machine
	mail   []delivery
	afters map[string]timerAt
	// disk is what was synced, cache what was written.
	disk, cache map[string][]byte
	tasks       map[string]*task
	keys        map[string]string
	open        map[string]bool
	// refuse makes channels refuse inputs.
	refuse   func(*messages.Input) *messages.Error
	answers  map[string]proto.Message
	events   []*messages.AgentEvent
	left     int // deliveries until the node dies; negative means that it lives
	dead     bool
	silent   bool // channels take inputs and do not answer
	delivers int
}

type timerAt struct {
	at  time.Time
	msg any
}

type delivery struct {
	to    string // ledger, channels, or the machine
	event kit.Event
	msg   proto.Message
	corr  string
}

type task struct {
	input    *messages.Input
	accepted time.Time
	ended    bool
}

func newWorld(t testing.TB, start string, p Params) *world {
	p.Ledger, p.Channels, p.Tools = kit.Path("ledger"), kit.Path("channels"), kit.Path("tools")
	w := &world{
		t: t, p: p, now: when(t, start), disk: map[string][]byte{}, cache: map[string][]byte{}, tasks: map[string]*task{}, keys: map[string]string{},
		answers: map[string]proto.Message{}, left: -1,
	}
	w.boot()
	return w
}

func when(t testing.TB, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return v.UTC()
}

// boot starts the machine over what is on the disk.
func (w *world) boot() {
	w.m, w.mail, w.afters, w.dead = New(w.p), nil, map[string]timerAt{}, false
	w.cache = maps.Clone(w.disk)
	w.step(kit.Event{Msg: kit.Started{Self: kit.Path("timers")}})
	w.pump()
}

// die ends the process: what is under way is gone, and what was not synced, if lose says so.
func (w *world) die(lose bool) {
	if !lose {
		w.disk = maps.Clone(w.cache)
	}
	w.mail, w.afters, w.left = nil, nil, -1
}

// records are what is on the disk.
func (w *world) records() []*messages.TimerRecord {
	var out []*messages.TimerRecord
	for _, id := range slices.Sorted(maps.Keys(w.disk)) {
		r, err := engine.Decode(store.Timer.KeyString(id), w.disk[id])
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func (w *world) stored(id string) *messages.Timer {
	for _, r := range w.records() {
		if r.GetTimer().GetTimerId() == id {
			return r.GetTimer()
		}
	}
	return nil
}

func (w *world) step(e kit.Event) {
	for _, f := range w.m.Step(w.now, e) {
		switch f := f.(type) {
		case kit.Send:
			w.mail = append(w.mail, delivery{to: f.To.GetPath(), msg: proto.Clone(f.Msg), corr: f.Corr})
		case kit.Reply:
			if f.Corr != "" {
				w.answers[f.Corr] = f.Msg
			}
		case kit.After:
			w.afters[f.Key] = timerAt{w.now.Add(f.D), f.Msg}
		case kit.CancelAfter:
			delete(w.afters, f.Key)
		case kit.Publish:
			w.events = append(w.events, f.Event)
		case load:
			w.mail = append(w.mail, delivery{event: kit.Event{Msg: loaded{Records: w.records()}}})
		case kit.Ready, kit.State, kit.Log:
		default:
			w.t.Fatalf("an effect of another kind: %T", f)
		}
	}
}

// pump delivers the mail until there is none, or the node dies.
func (w *world) pump() {
	for len(w.mail) > 0 {
		if w.left == 0 {
			w.dead = true
			return
		}
		w.left--
		w.delivers++
		d := w.mail[0]
		w.mail = w.mail[1:]
		switch d.to {
		case "ledger":
			w.ledger(d)
		case "channels":
			w.channels(d)
		case "":
			w.step(d.event)
		}
	}
}

func (w *world) reply(corr string, m proto.Message) {
	w.mail = append(w.mail, delivery{event: kit.Event{Corr: corr, Msg: m}})
}

func (w *world) ledger(d delivery) {
	switch m := d.msg.(type) {
	case *messages.LedgerExecute:
		for _, op := range m.GetOps() {
			if op.GetWrite().Value == nil {
				delete(w.cache, string(op.GetWrite().GetKey()))
			} else {
				w.cache[string(op.GetWrite().GetKey())] = op.GetWrite().GetValue()
			}
		}
		if m.GetSync() {
			w.disk = maps.Clone(w.cache)
		}
		if !m.GetSilent() {
			w.reply(d.corr, &messages.LedgerDone{})
		}
	case *messages.TaskQuery:
		k := w.tasks[m.GetInputId()]
		if k == nil {
			w.reply(d.corr, &messages.Error{Code: "unknown_input"})
			return
		}
		st := messages.TaskState_TASK_STATE_RUNNING
		if k.ended {
			st = messages.TaskState_TASK_STATE_ENDED
		}
		w.reply(d.corr, &messages.TaskStatus{Input: k.input, State: st, AcceptedUs: k.accepted.UnixMicro()})
	}
}

func (w *world) channels(d delivery) {
	switch m := d.msg.(type) {
	case *messages.RegisterChannel:
		w.reply(d.corr, &messages.Ok{})
	case *messages.ListChannels:
		w.reply(d.corr, &messages.ChannelList{Channels: []*messages.RegisterChannel{{Name: "cli"}, {Name: "timers"}}})
	case *messages.SubmitInput:
		in := m.GetInput()
		if w.refuse != nil {
			if err := w.refuse(in); err != nil {
				w.reply(d.corr, &messages.SubmitResult{InputId: in.GetId(), Error: err})
				return
			}
		}
		id, dup := w.keys[in.GetIdempotencyKey()]
		if !dup {
			id = in.GetId()
			w.keys[in.GetIdempotencyKey()] = id
			w.tasks[id] = &task{input: in, accepted: w.now, ended: !w.open[in.GetPrincipal().GetId()]}
			w.disk = maps.Clone(w.cache) // accepting syncs, and what was written before it with it
		}
		if !w.silent {
			w.reply(d.corr, &messages.SubmitResult{InputId: id, Duplicate: dup})
		}
	}
}

// to lets time go by until a time, firing what is set for it.
func (w *world) to(s string) { w.until(when(w.t, s)) }

func (w *world) until(end time.Time) {
	for !w.dead {
		key := ""
		for _, k := range slices.Sorted(maps.Keys(w.afters)) {
			if key == "" || w.afters[k].at.Before(w.afters[key].at) {
				key = k
			}
		}
		if key == "" || w.afters[key].at.After(end) {
			break
		}
		a := w.afters[key]
		delete(w.afters, key)
		if a.at.After(w.now) {
			w.now = a.at
		}
		w.step(kit.Event{Msg: a.msg})
		w.pump()
	}
	if !w.dead && end.After(w.now) {
		w.now = end
	}
}

// jump moves the clock on the wall alone: timers of the runtime do not see it.
func (w *world) jump(d time.Duration) {
	w.now = w.now.Add(d)
	for k, a := range w.afters {
		w.afters[k] = timerAt{a.at.Add(d), a.msg}
	}
}

// do hands a request over and returns its answer.
func (w *world) do(m proto.Message) proto.Message {
	w.t.Helper()
	corr := "r" + time.Duration(w.delivers).String()
	delete(w.answers, corr)
	w.step(kit.Event{From: kit.Path("asker"), Corr: corr, Msg: m})
	w.pump()
	return w.answers[corr]
}

// set puts a timer and fails the test when it is refused.
func (w *world) set(t *messages.Timer, change func(*messages.PutTimer)) *messages.Timer {
	w.t.Helper()
	p := &messages.PutTimer{Timer: t}
	if change != nil {
		change(p)
	}
	got, ok := w.do(p).(*messages.Timer)
	if !ok {
		w.t.Fatalf("%v was refused: %v", t, w.answers)
	}
	return got
}

func cronTimer(id, expr string, missed messages.MissedPolicy) *messages.Timer {
	return &messages.Timer{
		TimerId: id, Text: "do " + id, Kind: messages.TimerKind_TIMER_KIND_CRON, Cron: expr, Missed: missed,
		Taint: messages.Taint_TAINT_TRUSTED, Principal: &messages.Principal{Id: "owner", Kind: messages.PrincipalKind_PRINCIPAL_KIND_OWNER},
	}
}

// ran are the slots that became tasks, by the keys of their inputs.
func (w *world) ran(id string) []string {
	var out []string
	for key := range w.keys {
		if slot, ok := strings.CutPrefix(key, "timer:"+id+":"); ok && !strings.HasPrefix(slot, "run:") {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	for i, key := range out {
		sec, err := time.ParseDuration(strings.TrimPrefix(key, "timer:"+id+":") + "s")
		if err != nil {
			w.t.Fatal(err)
		}
		out[i] = time.Unix(int64(sec/time.Second), 0).UTC().Format(time.RFC3339)
	}
	return out
}

// outcomes are what was told of the slots of a timer, as "slot outcome reason passed".
func (w *world) outcomes(id string) []string {
	var out []string
	for _, e := range w.events {
		if s := e.GetTimer(); s.GetTimerId() == id {
			line := time.UnixMicro(s.GetSlotUs()).UTC().Format(time.RFC3339) + " " + s.GetOutcome() + " " + s.GetReason()
			if s.GetPassed() > 0 {
				line += " +" + time.Duration(s.GetPassed()).String() //nolint:gosec // a few
			}
			out = append(out, line)
		}
	}
	return out
}

func (w *world) expect(what string, got []string, want ...string) {
	w.t.Helper()
	if !slices.Equal(got, want) {
		w.t.Errorf("%s:\n got %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}
