package timers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"homeagent/actors/kit"
	"homeagent/configs"
	engine "homeagent/memory/timers"
	"homeagent/messages"
)

const (
	skip    = messages.MissedPolicy_MISSED_POLICY_SKIP
	runOnce = messages.MissedPolicy_MISSED_POLICY_RUN_ONCE
)

// A node that is off around slots: what it missed runs or is skipped by policy, with a reason, and the next slot is that
// of the schedule.
func TestRestartAroundSlots(t *testing.T) {
	w := newWorld(t, "2026-12-01T08:30:00Z", Params{})
	w.set(cronTimer("skips", "0 * * * *", skip), nil)
	w.set(cronTimer("runs", "0 * * * *", runOnce), nil)
	w.set(&messages.Timer{TimerId: "once", Text: "call home", Reminder: true}, func(p *messages.PutTimer) { p.At = "2026-12-01T10:15:00Z" })
	w.to("2026-12-01T09:00:00Z")
	w.die(true)
	w.now = when(t, "2026-12-01T09:00:30Z")
	w.boot()
	w.expect("a start right after the slot", w.ran("skips"), "2026-12-01T09:00:00Z")

	w.die(true)
	w.now = when(t, "2026-12-01T12:20:00Z")
	w.boot()
	w.expect("skipped", w.ran("skips"), "2026-12-01T09:00:00Z")
	w.expect("one of three", w.ran("runs"), "2026-12-01T09:00:00Z", "2026-12-01T12:00:00Z")
	w.expect("a reminder", w.ran("once"), "2026-12-01T10:15:00Z")
	w.expect("what is told", w.outcomes("skips"), "2026-12-01T09:00:00Z ran on_time", "2026-12-01T12:00:00Z skipped_missed not_running +2ns")
	w.expect("what is told", w.outcomes("runs"), "2026-12-01T09:00:00Z ran on_time", "2026-12-01T12:00:00Z ran late +2ns")
	if m := w.stored("skips"); m.GetSkipped() != 3 || m.GetRuns() != 1 || m.GetLastOutcome() != outcomeMissed || m.GetNextUs() != when(t, "2026-12-01T13:00:00Z").UnixMicro() {
		t.Errorf("stored %v", m)
	}
	if m := w.stored("once"); m.GetNextUs() != 0 || m.GetRuns() != 1 {
		t.Errorf("stored %v", m)
	}
	notices := 0
	for _, e := range w.events {
		if e.GetSystem().GetCode() == "timer_missed" {
			notices++
		}
	}
	if notices != 3 {
		t.Errorf("%d notices of what was missed, want one for each timer", notices)
	}
	// Starting again and again runs nothing again.
	for range 3 {
		w.die(true)
		w.now = w.now.Add(time.Minute)
		w.boot()
	}
	w.expect("again", w.ran("runs"), "2026-12-01T09:00:00Z", "2026-12-01T12:00:00Z")
	w.expect("again", w.ran("once"), "2026-12-01T10:15:00Z")
}

// The clock goes forward and back: a slot that is skipped runs once right after, one that comes twice runs once.
func TestDaylightSaving(t *testing.T) {
	w := newWorld(t, "2027-03-27T12:00:00Z", Params{})
	nightly := cronTimer("nightly", "30 2 * * *", skip)
	nightly.Zone = "Europe/Berlin"
	w.set(nightly, nil)
	w.to("2027-03-29T12:00:00Z")
	w.expect("forward", w.ran("nightly"), "2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z")

	w = newWorld(t, "2026-10-24T12:00:00Z", Params{})
	w.set(nightly, nil)
	w.to("2026-10-25T00:45:00Z")
	w.die(true)
	w.boot() // between the two
	w.to("2026-10-26T12:00:00Z")
	w.expect("back", w.ran("nightly"), "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z")
	w.expect("back", w.outcomes("nightly"), "2026-10-25T00:30:00Z ran on_time", "2026-10-26T01:30:00Z ran on_time")
}

// The zone of the node changes, live and while it is off: timers that name a zone keep theirs, the others follow.
func TestZoneChange(t *testing.T) {
	zone := func(name string) *time.Location {
		l, err := engine.Zone(name)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	w := newWorld(t, "2026-12-01T00:00:00Z", Params{Zone: zone("Europe/Berlin")})
	fixed := cronTimer("fixed", "0 8 * * *", skip)
	fixed.Zone = "Europe/Berlin"
	w.set(fixed, nil)
	w.set(cronTimer("follows", "0 8 * * *", skip), nil)
	w.to("2026-12-01T10:00:00Z")
	w.step(kit.Event{Corr: "config", Msg: &messages.ConfigChanged{Values: []*messages.ConfigValue{{Key: configs.KeyAgentTimezone, Value: "America/New_York"}}}})
	w.to("2026-12-02T10:00:00Z")
	w.expect("with a zone", w.ran("fixed"), "2026-12-01T07:00:00Z", "2026-12-02T07:00:00Z")
	w.expect("without", w.ran("follows"), "2026-12-01T07:00:00Z", "2026-12-01T13:00:00Z")

	w.die(true)
	w.p.Zone = zone("Asia/Shanghai")
	w.now = when(t, "2026-12-02T11:00:00Z")
	w.boot()
	w.to("2026-12-03T06:00:00Z")
	w.expect("in another zone after a start", w.ran("follows"), "2026-12-01T07:00:00Z", "2026-12-01T13:00:00Z", "2026-12-03T00:00:00Z")
	w.expect("with a zone", w.ran("fixed"), "2026-12-01T07:00:00Z", "2026-12-02T07:00:00Z")
}

// A machine that sleeps: timers of the runtime stand still, and the clock on the wall is found to have moved within a
// minute of its waking up.
func TestLongSleep(t *testing.T) {
	w := newWorld(t, "2026-12-01T08:30:00Z", Params{})
	w.set(cronTimer("skips", "0 * * * *", skip), nil)
	w.set(cronTimer("runs", "0 * * * *", runOnce), nil)
	w.to("2026-12-01T08:30:10Z")
	w.jump(26 * time.Hour) // now 2026-12-02T10:30:10Z
	w.until(w.now.Add(61 * time.Second))
	w.expect("missed", w.outcomes("skips"), "2026-12-02T10:00:00Z skipped_missed not_running +25ns")
	w.expect("missed", w.outcomes("runs"), "2026-12-02T10:00:00Z ran late +25ns")
	w.to("2026-12-02T11:00:01Z")
	w.expect("after it", w.ran("skips"), "2026-12-02T11:00:00Z")

	// A short one: the slot is late by less than the grace, and runs.
	w.to("2026-12-02T11:59:30Z")
	w.jump(45 * time.Second)
	w.until(w.now.Add(61 * time.Second))
	w.expect("a short sleep", w.ran("skips"), "2026-12-02T11:00:00Z", "2026-12-02T12:00:00Z")
}

// The clock steps back over slots that ran: none of them runs again, and those to come are in their places.
func TestClockStepsBack(t *testing.T) {
	w := newWorld(t, "2026-12-01T08:30:00Z", Params{})
	w.set(cronTimer("hourly", "0 * * * *", runOnce), nil)
	w.to("2026-12-01T10:05:00Z")
	w.jump(-2 * time.Hour)
	w.to("2026-12-01T10:30:00Z")
	w.die(true)
	w.boot()
	w.to("2026-12-01T11:30:00Z")
	w.expect("each once", w.outcomes("hourly"), "2026-12-01T09:00:00Z ran on_time", "2026-12-01T10:00:00Z ran on_time", "2026-12-01T11:00:00Z ran on_time")
}

// The task of an earlier slot is still there when the next is due.
func TestOverlap(t *testing.T) {
	w := newWorld(t, "2026-12-01T08:30:00Z", Params{})
	w.open = map[string]bool{"timer:skips": true, "timer:queues": true}
	w.set(cronTimer("skips", "0 * * * *", skip), nil)
	queues := cronTimer("queues", "0 * * * *", skip)
	queues.Overlap = messages.OverlapPolicy_OVERLAP_POLICY_QUEUE
	w.set(queues, nil)
	w.to("2026-12-01T10:30:00Z")
	w.expect("skipped", w.outcomes("skips"), "2026-12-01T09:00:00Z ran on_time", "2026-12-01T10:00:00Z skipped_overlap earlier_running")
	w.expect("queued", w.ran("queues"), "2026-12-01T09:00:00Z", "2026-12-01T10:00:00Z")
	for _, k := range w.tasks {
		k.ended = true
	}
	w.die(true)
	w.boot()
	w.to("2026-12-01T11:30:00Z")
	w.expect("after its end", w.ran("skips"), "2026-12-01T09:00:00Z", "2026-12-01T11:00:00Z")
	if m := w.stored("skips"); m.GetSkipped() != 1 || m.GetRuns() != 2 {
		t.Errorf("stored %v", m)
	}
	for id := range w.tasks { // one that retention has dropped has ended long ago
		delete(w.tasks, id)
	}
	w.to("2026-12-01T12:30:00Z")
	w.expect("unknown", w.ran("skips"), "2026-12-01T09:00:00Z", "2026-12-01T11:00:00Z", "2026-12-01T12:00:00Z")
}

// The process is killed at every point between a slot that comes and its outcome on the disk, with what was not synced
// kept and lost, and starts again soon and late. Each slot is run once or not at all, and what is recorded is what was.
func TestKillAnywhere(t *testing.T) {
	points := 0
	for _, missed := range []messages.MissedPolicy{skip, runOnce} {
		for _, lose := range []bool{true, false} {
			for _, away := range []time.Duration{5 * time.Second, 150 * time.Minute} {
				for kill := 0; ; kill++ {
					name := fmt.Sprintf("policy %s, unsynced writes lost %v, away %s, killed after %d deliveries", missed, lose, away, kill)
					w := newWorld(t, "2026-12-01T08:59:00Z", Params{})
					w.set(cronTimer("T", "0 * * * *", missed), nil)
					w.left = kill
					w.to("2026-12-01T09:00:01Z")
					if !w.dead {
						w.left = -1
						break // no further point
					}
					points++
					before := len(w.tasks)
					at := w.now
					w.die(lose)
					w.now = at.Add(away)
					w.boot()
					w.until(w.now.Add(10 * time.Second))

					var want []string
					switch {
					case away < time.Minute, before == 1:
						want = []string{"2026-12-01T09:00:00Z"}
					}
					if away > time.Minute && missed == runOnce {
						want = append(want, "2026-12-01T11:00:00Z")
					}
					if got := w.ran("T"); !slices.Equal(got, want) {
						t.Fatalf("%s: ran %v, want %v", name, got, want)
					}
					m := w.stored("T")
					if int(m.GetRuns()) != len(want) || len(w.tasks) != len(want) {
						t.Fatalf("%s: %d runs are recorded of %d, tasks %d", name, m.GetRuns(), len(want), len(w.tasks))
					}
					if r := w.records()[0]; r.GetPendingUs() != 0 {
						t.Fatalf("%s: an intent is left: %v", name, r)
					}
				}
			}
		}
	}
	if points < 40 {
		t.Errorf("only %d points were tried", points)
	}
}

// A slot that cannot be handed over is tried again, and refused when that lasts.
func TestRefused(t *testing.T) {
	w := newWorld(t, "2026-12-01T08:59:00Z", Params{})
	full := true
	w.refuse = func(*messages.Input) *messages.Error {
		if full {
			return &messages.Error{Code: "queue_full", Message: "Full.", RetryAfterMs: 2000}
		}
		return nil
	}
	w.set(cronTimer("T", "0 * * * *", skip), nil)
	w.to("2026-12-01T09:05:00Z")
	full = false
	w.to("2026-12-01T09:06:00Z")
	w.expect("in the end", w.outcomes("T"), "2026-12-01T09:00:00Z ran on_time")

	full = true
	w.to("2026-12-01T10:11:00Z")
	w.expect("never", w.outcomes("T"), "2026-12-01T09:00:00Z ran on_time", "2026-12-01T10:00:00Z refused queue_full")
	if e := w.events[len(w.events)-2].GetError(); e.GetCode() != "timer_refused" {
		t.Errorf("people are told %v", e)
	}
	full = false
	w.refuse = func(in *messages.Input) *messages.Error {
		return &messages.Error{Code: "unknown_agent", Message: "Gone."}
	}
	w.to("2026-12-01T11:00:01Z")
	if m := w.stored("T"); m.GetLastReason() != "unknown_agent" || !m.GetPaused() {
		t.Errorf("a timer for nobody: %v", m)
	}
	if runs := w.stored("T").GetRuns(); runs != 1 {
		t.Errorf("%d runs", runs)
	}
}

// Channels accept the input and are gone before they answer: it is handed over again under the same key.
func TestNoAnswer(t *testing.T) {
	w := newWorld(t, "2026-12-01T08:59:00Z", Params{})
	w.set(cronTimer("T", "0 * * * *", skip), nil)
	w.silent = true
	w.to("2026-12-01T09:00:10Z")
	w.silent = false
	w.to("2026-12-01T09:01:00Z")
	w.expect("once", w.outcomes("T"), "2026-12-01T09:00:00Z ran on_time")
	if len(w.tasks) != 1 || w.stored("T").GetRuns() != 1 || w.tasks[w.stored("T").GetLastTask()] == nil {
		t.Errorf("%d tasks, stored %v", len(w.tasks), w.stored("T"))
	}
}

// What a task is told, and in whose name it works.
func TestInput(t *testing.T) {
	w := newWorld(t, "2026-12-01T08:59:00Z", Params{})
	m := cronTimer("T", "0 9 * * *", skip)
	m.Name, m.Channel, m.Conversation, m.Reminder, m.Zone = "Blumen", "cli", "main", true, "Europe/Berlin"
	m.Cron = "0 10 * * *"
	w.set(m, nil)
	unknown := cronTimer("U", "0 9 * * *", skip)
	unknown.Taint = messages.Taint_TAINT_UNSPECIFIED
	w.set(unknown, nil)
	w.to("2026-12-01T09:00:01Z")
	if len(w.tasks) != 2 {
		t.Fatalf("%d tasks", len(w.tasks))
	}
	for _, k := range w.tasks {
		in := k.input
		if in.GetPrincipal().GetKind() != messages.PrincipalKind_PRINCIPAL_KIND_SYSTEM || len(in.GetOnBehalf()) != 1 || in.GetOnBehalf()[0].GetId() != "owner" ||
			in.GetMode() != messages.Mode_MODE_QUEUE || in.GetAgent() != "main" {
			t.Errorf("input %v", in)
		}
		switch in.GetPrincipal().GetId() {
		case "timer:T":
			want := `The timer "Blumen" is due: Tuesday 2026-12-01 10:00:00 (Europe/Berlin). It is a reminder that was set earlier: tell the person now what it says.`
			if in.GetParts()[0].GetText() != want || in.GetParts()[1].GetText() != "do T" || in.GetSource() != messages.InputSource_INPUT_SOURCE_REMINDER ||
				in.GetTaint() != messages.Taint_TAINT_TRUSTED || in.GetChannel() != "cli" || in.GetConversation() != "main" {
				t.Errorf("input %v", in)
			}
		case "timer:U":
			if in.GetSource() != messages.InputSource_INPUT_SOURCE_JOB || in.GetTaint() != messages.Taint_TAINT_FOREIGN || in.GetChannel() != Channel || in.GetConversation() != "U" {
				t.Errorf("input %v", in)
			}
		}
	}
}
