package kit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// echo answers what it is asked.
func echo(_ time.Time, e Event) []Effect {
	if m, ok := e.Msg.(proto.Message); ok {
		return []Effect{e.Reply(m)}
	}
	return nil
}

func TestAsk(t *testing.T) {
	run(t, func(w *world) {
		a := w.top("echo", props(echo))
		if a.Node != "n1" || a.Path != "echo" || a.Epoch != 7 {
			t.Errorf("address %v", a)
		}
		if got := word(w.ask("echo", user("hi"))); got != "hi" {
			t.Errorf("answer %q", got)
		}
		if got := word(w.ask("echo", urgent("now"))); got != "now" {
			t.Errorf("answer %q", got)
		}
		if n := len(w.asks.waiting); n != 0 {
			t.Errorf("%d askers left", n)
		}
	})
}

func TestAskFails(t *testing.T) {
	run(t, func(w *world) {
		w.top("mute", props(func(time.Time, Event) []Effect { return nil }))
		w.top("no", props(func(_ time.Time, e Event) []Effect {
			return []Effect{e.Reply(&messages.Error{Code: "nope", Message: "no"})}
		}))
		short, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		gone, stop := context.WithCancel(context.Background())
		stop()
		for _, c := range []struct {
			name string
			ctx  context.Context
			to   *messages.Address
			code string
		}{
			{"nobody there", context.Background(), Path("nobody"), CodeGone},
			{"nil address", context.Background(), nil, CodeGone},
			{"earlier boot", context.Background(), &messages.Address{Path: "no", Epoch: 6}, CodeGone},
			{"other node", context.Background(), &messages.Address{Node: "n2", Path: "no"}, CodeUnreachable},
			{"refused", context.Background(), Path("no"), "nope"},
			{"no answer", short, Path("mute"), CodeTimeout},
			{"no answer, no deadline", context.Background(), Path("mute"), CodeTimeout},
			{"asker gave up", gone, Path("mute"), CodeCancelled},
		} {
			_, err := w.Ask(c.ctx, c.to, user("x"))
			var r *Refused
			if !errors.As(err, &r) || Code(err) != c.code {
				t.Errorf("%s: %v, code %q, want %q", c.name, err, Code(err), c.code)
			}
		}
	})
}

func TestSecondAnswerIsADeadLetter(t *testing.T) {
	run(t, func(w *world) {
		w.top("twice", props(func(_ time.Time, e Event) []Effect {
			return []Effect{e.Reply(user("first")), e.Reply(user("second"))}
		}))
		if got := word(w.ask("twice", user("x"))); got != "first" {
			t.Errorf("answer %q", got)
		}
		synctest.Wait()
		// Started is answered too, to nobody: that is no message at all.
		if n := w.Counters().DeadLetters; n != 1 {
			t.Errorf("%d dead letters", n)
		}
	})
}

func TestExpect(t *testing.T) {
	run(t, func(w *world) {
		w.top("echo", props(echo))
		got, err := Expect[*messages.Principal](context.Background(), w, Path("echo"), user("a"))
		if err != nil || got.GetId() != "a" {
			t.Errorf("%v %v", got, err)
		}
		if _, err := Expect[*messages.Ok](context.Background(), w, Path("echo"), user("a")); Code(err) != "unexpected_answer" {
			t.Errorf("%v", err)
		}
	})
}

// TestSend shows that a message tells its sender, that a request is answered under its correlation, and what comes
// back when it cannot be delivered.
func TestSend(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		w.top("echo", props(func(_ time.Time, e Event) []Effect {
			if e.From != nil {
				d.add("from:" + e.From.GetPath())
			}
			return echo(time.Time{}, e)
		}))
		asker := w.top("asker", props(func(_ time.Time, e Event) []Effect {
			switch word(e.Msg) {
			case "go":
				return []Effect{
					Send{To: Path("echo"), Msg: user("one")},
					Send{To: Path("echo"), Msg: user("two"), Corr: "c2"},
					Send{To: Path("echo"), Msg: urgent("three"), Corr: "c3"},
					Send{To: Path("nobody"), Msg: user("four"), Corr: "c4"},
					Send{To: &messages.Address{Node: "n9"}, Msg: user("five")},
				}
			case "started":
				return nil
			}
			line := word(e.Msg) + "/" + e.Corr
			if e.From != nil {
				line = e.From.GetPath() + ":" + line
			}
			d.add(line)
			return nil
		}))
		if err := w.Tell(asker, user("go")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		got := d.String()
		for _, want := range []string{
			"from:asker", "echo:one/", "echo:two/c2", "echo:three/c3", "fault(actor_gone)/", "fault(node_unreachable)/",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in %q", want, got)
			}
		}
	})
}

func TestTellReportsGone(t *testing.T) {
	run(t, func(w *world) {
		if err := w.Tell(Path("nobody"), user("x")); Code(err) != CodeGone {
			t.Errorf("%v", err)
		}
	})
}

// TestControlGoesFirst queues messages behind a handler that waits, then sends a control message.
func TestControlGoesFirst(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		gate := make(chan struct{})
		a := w.top("a", props(func(_ time.Time, e Event) []Effect {
			d.add(word(e.Msg))
			if word(e.Msg) == "block" {
				<-gate
			}
			return nil
		}))
		for _, s := range []string{"block", "b", "c"} {
			w.tell(a, user(s))
		}
		synctest.Wait()
		w.tell(a, urgent("URGENT"))
		close(gate)
		synctest.Wait()
		d.want(t, "started block URGENT b c")
	})
}

// TestAdmission fills a mailbox: over the soft limit requests are refused, over the hard limit everything, the control
// lane never.
func TestAdmission(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		gate := make(chan struct{})
		p := props(func(_ time.Time, e Event) []Effect {
			if word(e.Msg) == "block" {
				<-gate
			}
			return nil
		})
		p.Limits = Limits{Soft: 2, Hard: 4}
		a := w.top("a", p)
		asker := w.top("asker", props(func(_ time.Time, e Event) []Effect {
			switch word(e.Msg) {
			case "ask":
				return []Effect{Send{To: a, Msg: user("r"), Corr: "c"}}
			case "tell":
				return []Effect{Send{To: a, Msg: user("r")}}
			case "busy":
				d.add(e.From.GetPath() + ":" + e.Corr)
			}
			d.add(word(e.Msg))
			return nil
		}))
		w.tell(a, user("block"))
		synctest.Wait()
		w.tell(a, user("1"))
		w.tell(a, user("2"))
		if _, err := w.Ask(context.Background(), a, user("r")); Code(err) != CodeBusy {
			t.Errorf("ask over soft: %v", err)
		}
		w.tell(asker, user("ask"))
		synctest.Wait()
		if err := w.Tell(a, user("3")); err != nil {
			t.Errorf("tell over soft: %v", err)
		}
		w.tell(a, user("4"))
		if err := w.Tell(a, user("5")); Code(err) != CodeBusy {
			t.Errorf("tell over hard: %v", err)
		}
		if err := w.Tell(a, urgent("u")); err != nil {
			t.Errorf("control over hard: %v", err)
		}
		w.tell(asker, user("tell"))
		synctest.Wait()
		d.want(t, "started a:c busy fault(busy)")
		info, _ := w.Actor("a")
		if info.Refused != 4 || w.Counters().Refused != 4 || info.MailboxUser != 4 || info.MailboxControl != 1 {
			t.Errorf("refused %d, depth %d/%d", info.Refused, info.MailboxUser, info.MailboxControl)
		}
		close(gate)
	})
}

// TestRequestToTheDead shows that a request which its receiver never came to is answered.
func TestRequestToTheDead(t *testing.T) {
	for _, paused := range []bool{false, true} {
		run(t, func(w *world) {
			gate := make(chan struct{})
			a := w.top("a", props(func(_ time.Time, e Event) []Effect {
				if word(e.Msg) == "block" {
					<-gate
				}
				return nil
			}))
			if paused {
				if err := w.Pause(context.Background(), "a"); err != nil {
					t.Fatal(err)
				}
			}
			w.tell(a, user("block"))
			failed := make(chan error)
			go func() {
				_, err := w.Ask(context.Background(), a, user("late"))
				failed <- err
			}()
			synctest.Wait()
			w.get("a").order(false)
			close(gate)
			if err := <-failed; Code(err) != CodeGone {
				t.Errorf("paused %v: %v", paused, err)
			}
			if !strings.Contains(w.log.String(), "dead letter") || w.Counters().DeadLetters == 0 {
				t.Error("no dead letter")
			}
		})
	}
}

func TestPublish(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		w.top("events", props(func(_ time.Time, e Event) []Effect {
			if ev, ok := e.Msg.(*messages.AgentEvent); ok {
				if ev.GetAtUs() == 0 {
					t.Error("no time")
				}
				d.add(ev.GetText())
			}
			return nil
		}))
		w.top("a", props(func(_ time.Time, e Event) []Effect {
			return []Effect{Publish{&messages.AgentEvent{Text: "hello"}}}
		}))
		synctest.Wait()
		d.want(t, "hello")
	})
}

func TestUnknownEffectFails(t *testing.T) {
	type own struct{ Private }
	run(t, func(w *world) {
		w.top("a", props(func(_ time.Time, e Event) []Effect { return []Effect{own{}} }))
		synctest.Wait()
		if n := w.Counters().Failures; n != 1 {
			t.Errorf("%d failures", n)
		}
	})
}
