package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/internal/simulate/disk"
	"homeagent/messages"
)

// bent is a machine that hears or does something else than it should.
type bent struct {
	kit.Machine
	hears func(e kit.Event) kit.Event
	does  func(e kit.Event, f kit.Effect) []kit.Effect
}

// Step implements kit.Machine.
func (b bent) Step(now time.Time, e kit.Event) []kit.Effect {
	if b.hears != nil {
		e = b.hears(e)
	}
	var out []kit.Effect
	for _, f := range b.Machine.Step(now, e) {
		if b.does == nil {
			out = append(out, f)
		} else {
			out = append(out, b.does(e, f)...)
		}
	}
	return out
}

// Show implements kit.Shower.
func (b bent) Show() any {
	if s, ok := b.Machine.(kit.Shower); ok {
		return s.Show()
	}
	return nil
}

// bend changes what machines of a kind do.
func bend(kind string, does func(e kit.Event, f kit.Effect) []kit.Effect) bug {
	return bug{wrap: func(k string, m kit.Machine) kit.Machine {
		if k != kind {
			return m
		}
		return bent{Machine: m, does: does}
	}}
}

// deafen changes what machines of a kind hear.
func deafen(kind string, hears func(e kit.Event) kit.Event) bug {
	return bug{wrap: func(k string, m kit.Machine) kit.Machine {
		if k != kind {
			return m
		}
		return bent{Machine: m, hears: hears}
	}}
}

// sends changes the messages that machines of a kind send; nil sends nothing.
func sends(kind string, change func(m proto.Message) proto.Message) bug {
	return bend(kind, func(_ kit.Event, f kit.Effect) []kit.Effect {
		s, ok := f.(kit.Send)
		if !ok {
			return []kit.Effect{f}
		}
		if s.Msg = change(s.Msg); s.Msg == nil {
			return nil
		}
		return []kit.Effect{s}
	})
}

func without[M proto.Message](m proto.Message) proto.Message {
	if _, it := m.(M); it {
		return nil
	}
	return m
}

func ops(m proto.Message, change func(op *messages.LedgerOp) bool) proto.Message {
	x, ok := m.(*messages.LedgerExecute)
	if !ok {
		return m
	}
	x = proto.CloneOf(x)
	var kept []*messages.LedgerOp
	for _, op := range x.GetOps() {
		if change(op) {
			kept = append(kept, op)
		}
	}
	x.Ops = kept
	return x
}

// planted are bugs, and the invariant that must see each.
var planted = []struct {
	name      string
	invariant string
	bug       bug
}{
	{"the scheduler forgets to resume", "progress", sends("scheduler", without[*messages.Resume])},
	{"the scheduler never asks a turn to make place", "levels", sends("scheduler", without[*messages.Preempt])},
	{"an end is published twice", "one end", bend("scheduler", func(_ kit.Event, f kit.Effect) []kit.Effect {
		if p, ok := f.(kit.Publish); ok && p.Event.GetTask().GetChange() == "ended" {
			return []kit.Effect{f, f}
		}
		return []kit.Effect{f}
	})},
	{"an end is not published", "one end", bend("scheduler", func(_ kit.Event, f kit.Effect) []kit.Effect {
		if p, ok := f.(kit.Publish); ok && p.Event.GetTask().GetChange() == "ended" {
			return nil
		}
		return []kit.Effect{f}
	})},
	{"the ledger answers before the disk has synced", "accepted", bug{disk: func(d *disk.Disk) { d.Forget = true }}},
	{"a call that may not run twice runs again after a crash", "once", deafen("turn", func(e kit.Event) kit.Event {
		if l, ok := e.Msg.(*messages.ToolList); ok {
			l = proto.CloneOf(l)
			for _, d := range l.GetTools() {
				d.Effect = messages.ToolEffect_TOOL_EFFECT_IDEMPOTENT
			}
			e.Msg = l
		}
		return e
	})},
	{"the start of a call is not journaled", "once", sends("turn", func(m proto.Message) proto.Message {
		return ops(m, func(op *messages.LedgerOp) bool {
			return op.GetJournal().GetKind() != messages.JournalKind_JOURNAL_KIND_TOOL_STARTED
		})
	})},
	{"the text of a steered input is lost", "steer", deafen("turn", func(e kit.Event) kit.Event {
		if m, ok := e.Msg.(*messages.Steer); ok {
			m = proto.CloneOf(m)
			m.Input.Parts = []*messages.Part{{Content: &messages.Part_Text{Text: "lost"}}}
			e.Msg = m
		}
		return e
	})},
	{"a stop leaves what waits", "stop", deafen("scheduler", func(e kit.Event) kit.Event {
		if s, ok := e.Msg.(*messages.StopAll); ok {
			s = proto.CloneOf(s)
			s.Conversation = "another"
			e.Msg = s
		}
		return e
	})},
	{"the cooldown blocks a person", "levels", deafen("scheduler", func(e kit.Event) kit.Event {
		if o, ok := e.Msg.(*messages.Offer); ok {
			o = proto.CloneOf(o)
			o.Input.PersonWaits = false
			e.Msg = o
		}
		return e
	})},
	{"an output that may have been sent goes out unlabelled", "reply", deafen("desk", func(e kit.Event) kit.Event {
		if s, ok := e.Msg.(*messages.SendOutput); ok {
			s = proto.CloneOf(s)
			s.MaybeRepeated = false
			e.Msg = s
		}
		return e
	})},
	{"an answer counts as sent and is not", "reply", bend("turn", func(_ kit.Event, f kit.Effect) []kit.Effect {
		if s, ok := f.(kit.Send); ok {
			if o, ok := s.Msg.(*messages.SendOutput); ok {
				return []kit.Effect{kit.Send{To: kit.Path("ledger"), Msg: &messages.LedgerExecute{Silent: true, Ops: []*messages.LedgerOp{{
					Op: &messages.LedgerOp_Sent{Sent: &messages.OutputReceipt{OutputId: o.GetOutput().GetOutputId()}},
				}}}}}
			}
		}
		return []kit.Effect{f}
	})},
	{"idempotency keys are ignored", "idempotency", sends("channels", func(m proto.Message) proto.Message {
		return ops(m, func(op *messages.LedgerOp) bool {
			if a := op.GetAccept(); a != nil {
				a.Input.IdempotencyKey = ""
			}
			return true
		})
	})},
	{"a turn answers with what it said before it was cut", "output", deafen("turn", func(e kit.Event) kit.Event {
		if d, ok := e.Msg.(*messages.CompletionDone); ok && d.GetResult().GetFinish() == messages.Finish_FINISH_STOP {
			d = proto.CloneOf(d)
			d.Result.Text = strings.TrimSuffix(d.GetResult().GetText(), "1")
			e.Msg = d
		}
		return e
	})},
	{"a parked turn is never woken", "progress", sends("guard", without[*messages.ApprovalsDecided])},
	{"a call runs though a person must be asked", "approval", deafen("turn", func(e kit.Event) kit.Event {
		if v, ok := e.Msg.(*messages.CallVerdicts); ok {
			v = proto.CloneOf(v)
			for _, one := range v.GetVerdicts() {
				one.Verdict = messages.Verdict_VERDICT_ALLOW
			}
			e.Msg = v
		}
		return e
	})},
	{"a turn dies on a message that it should bear", "panic", deafen("turn", func(e kit.Event) kit.Event {
		if _, ok := e.Msg.(*messages.Resume); ok {
			panic("resumed")
		}
		return e
	})},
}

// within is how many seeds must be enough to see a planted bug.
const within = 600

// TestPlanted plants one bug after the other and wants the invariant that it breaks to be violated.
func TestPlanted(t *testing.T) {
	for _, p := range planted {
		t.Run(strings.ReplaceAll(p.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(within) {
				bad := newWorld(makePlan(seed), p.bug, nil).run()
				if bad == nil {
					continue
				}
				if bad.invariant != p.invariant {
					t.Logf("seed %d violates %v", seed, bad)
					continue
				}
				t.Logf("seen with seed %d: %v", seed, strings.SplitN(bad.Error(), "\n", 2)[0])
				return
			}
			t.Fatalf("%d seeds did not violate %q", within, p.invariant)
		})
	}
}

// TestExplained shows that a failure comes with its seed, the invariant and a small plan.
func TestExplained(t *testing.T) {
	b := planted[0].bug
	r := simulate(options{seeds: within, workers: 1}, b, nil)
	if len(r.failed) != 1 {
		t.Fatalf("%d seeds failed", len(r.failed))
	}
	f := r.failed[0]
	small, bad := shrink(makePlan(f.seed), f.bad, b)
	if len(small.actions) > len(makePlan(f.seed).actions) || len(small.actions) > 4 || bad.invariant != f.bad.invariant {
		t.Fatalf("%d actions are left of %d, and %v is violated", len(small.actions), len(makePlan(f.seed).actions), bad)
	}
	var out bytes.Buffer
	explain(&out, f, b)
	for _, want := range []string{"seed ", `violates "progress"`, "what is left of its plan", "submit ", "# VIOLATED progress"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the explanation lacks %q", want)
		}
	}
}
