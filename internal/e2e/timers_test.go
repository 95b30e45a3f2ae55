package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homeagent/messages/api"
	"homeagent/providers/providertest"
)

// slot waits for what becomes of the next slot of a timer.
func (r *tape) slot(id string) api.Event {
	r.t.Helper()
	return r.await("a slot of "+id, func(e *api.Event) bool { return e.Timer != nil && e.Timer.ID == id })
}

// addTimer sets a timer as a person does.
func (n *node) addTimer(args ...string) api.Timer {
	n.t.Helper()
	var got api.Timer
	decodeJSON(n.t, n.waiter(append([]string{"timers", "add", "--json"}, args...)...).must(n.t).stdout, &got)
	return got
}

func (n *node) timers() map[string]api.Timer {
	n.t.Helper()
	var l api.Timers
	decodeJSON(n.t, n.waiter("timers", "list", "--json").must(n.t).stdout, &l)
	out := map[string]api.Timer{}
	for _, t := range l.Timers {
		out[t.ID] = t
	}
	return out
}

// TestTimerReachesTheChat sets a reminder while somebody chats: its answer comes up in their conversation.
func TestTimerReachesTheChat(t *testing.T) {
	n, _ := withVendor(t,
		providertest.Step{Match: "hello there", Times: 1, Text: []string{"Good evening."}},
		providertest.Step{Match: "tea is ready", Text: []string{"Your tea ", "is ready!"}},
	)
	chat := exec.Command(filepath.Join(bin, "waiter"), "chat", "--data", n.data)
	chat.Env = cleanEnv()
	in, err := chat.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := chat.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := chat.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 256)
	go func() {
		defer close(lines)
		sc := bufio.NewScanner(out)
		for sc.Scan() {
			lines <- sc.Text()
		}
	}()
	t.Cleanup(func() {
		_ = in.Close() // it ends the chat, which may have ended
		for range lines {
		}
		_ = chat.Wait()
	})
	said := func(what string) {
		t.Helper()
		var all []string
		ctx := bounded(t)
		for {
			select {
			case line, ok := <-lines:
				if all = append(all, line); strings.Contains(line, what) {
					return
				}
				if !ok {
					t.Fatalf("the chat ended without %q:\n%s", what, strings.Join(all, "\n"))
				}
			case <-ctx.Done():
				t.Fatalf("the chat does not show %q:\n%s", what, strings.Join(all, "\n"))
			}
		}
	}
	if _, err := fmt.Fprintln(in, "hello there"); err != nil {
		t.Fatal(err)
	}
	said("Good evening.")

	tape := n.tape("")
	timer := n.addTimer("--in", "1s", "--reminder", "--name", "tea", "--text", "the tea is ready")
	if timer.Kind != "once" || timer.Next == nil || timer.Setter != "owner" || timer.Channel != "cli" {
		t.Errorf("the timer is %+v", timer)
	}
	slot := tape.slot(timer.ID)
	if slot.Timer.Outcome != "ran" || slot.Timer.Reason != "on_time" || slot.TaskID == "" {
		t.Errorf("its slot is %+v", slot)
	}
	said("is ready!")
	end := tape.ended(slot.TaskID, "answered")
	if end.Task.Level != 3 || end.Channel != "cli" || end.Conversation != "main" {
		t.Errorf("its task ended as %+v %+v", end, end.Task)
	}
	tape.once(slot.TaskID, "ended")
	if got := n.timers()[timer.ID]; got.Next != nil || got.Runs != 1 || got.LastTask != slot.TaskID || got.LastOutcome != "ran" {
		t.Errorf("it is listed as %+v", got)
	}
	contains(t, n.waiter("timers").must(t).stdout, timer.ID, "tea", "done", "ran")
}

// TestTimerSetByTheModel has the model set a timer: its answer goes to the conversation in which it was set.
func TestTimerSetByTheModel(t *testing.T) {
	n, v := withVendor(t,
		providertest.Step{Match: "in a second", AfterTool: &no, Times: 1, Tools: []providertest.Tool{{
			ID: "call_t", Name: "timer_set", Args: json.RawMessage(`{"in":"1s","text":"Say that the oven is hot.","name":"oven"}`),
		}}},
		providertest.Step{Match: "in a second", AfterTool: &yes, Times: 1, Text: []string{"I will."}},
		providertest.Step{Match: "Say that the oven is hot", Text: []string{"The oven is hot."}},
	)
	tape := n.tape("")
	got := n.submit(api.Submit{Text: "Tell me in a second that the oven is hot.", Conversation: "kitchen"})
	tape.ended(got.InputID, "answered")
	_, results := v.bodies()[1].results()
	var set struct {
		ID, Name, When, Next string
		Reminder             bool
	}
	decodeJSON(t, results[0], &set)
	if set.Name != "oven" || !set.Reminder || set.Next == "" || !strings.HasPrefix(set.When, "at ") {
		t.Errorf("the model was told %s", results[0])
	}
	slot := tape.slot(set.ID)
	end := tape.ended(slot.TaskID, "answered")
	if end.Task.Text != "The oven is hot." || end.Conversation != "kitchen" {
		t.Errorf("it ended as %+v %+v", end, end.Task)
	}
	out := tape.await("its output", func(e *api.Event) bool { return e.Type == api.EventOutput && e.TaskID == slot.TaskID })
	if out.Channel != "cli" || out.Conversation != "kitchen" {
		t.Errorf("it was said on %s in %s", out.Channel, out.Conversation)
	}
}

// TestTimersOverARestart kills the node before slots: what is due after the start runs, what was missed does what its
// policy says, and nothing runs twice.
func TestTimersOverARestart(t *testing.T) {
	n, _ := withVendor(t, providertest.Step{Text: []string{"Done."}})
	n.waiter("config", "set", "core.timers.grace", "1s").must(t)
	soon := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	missed := time.Now().Add(2 * time.Second)
	skips := n.addTimer("--at", soon(2*time.Second), "--missed", "skip", "skipped")
	runs := n.addTimer("--at", soon(2*time.Second), "--missed", "run_once", "runs late")
	later := n.addTimer("--at", soon(10*time.Second), "after the start")
	n.kill()
	// Nothing tells of the wall clock of a node that is off.
	off := time.NewTimer(time.Until(missed.Add(1500 * time.Millisecond)))
	<-off.C
	n.start()
	tape := n.replay()
	if s := tape.slot(skips.ID).Timer; s.Outcome != "skipped_missed" || s.Reason != "not_running" {
		t.Errorf("skipped: %+v", s)
	}
	late := tape.slot(runs.ID)
	if late.Timer.Outcome != "ran" || late.Timer.Reason != "late" {
		t.Errorf("run late: %+v", late.Timer)
	}
	tape.ended(late.TaskID, "answered")
	onTime := tape.slot(later.ID)
	if onTime.Timer.Outcome != "ran" || onTime.Timer.Reason != "on_time" {
		t.Errorf("after the start: %+v", onTime.Timer)
	}
	tape.ended(onTime.TaskID, "answered")
	n.kill()
	n.start()
	for id, want := range map[string]uint64{skips.ID: 0, runs.ID: 1, later.ID: 1} {
		if got := n.timers()[id]; got.Runs != want || got.Next != nil {
			t.Errorf("after it all: %+v", got)
		}
	}
	if got := len(n.replay().all(func(e *api.Event) bool { return e.Timer != nil })); got != 0 {
		t.Errorf("%d slots after another start", got)
	}
}

// TestTimerOrders holds, runs and removes timers, and is told what is wrong with those that make no sense.
func TestTimerOrders(t *testing.T) {
	n, _ := withVendor(t, providertest.Step{Text: []string{"Done."}})
	tape := n.tape("")
	timer := n.addTimer("--cron", "0 4 1 1 *", "--zone", "Asia/Shanghai", "--name", "新年", "新年快乐")
	if timer.EffectiveZone != "Asia/Shanghai" || timer.Next == nil || timer.Next.UTC().Format("01-02 15:04") != "12-31 20:00" {
		t.Errorf("the timer is %+v", timer)
	}
	contains(t, n.waiter("timers", "pause", "新年").must(t).stdout, "held")
	contains(t, n.waiter("timers", "resume", timer.ID).must(t).stdout, "04:00:00 Asia/Shanghai")
	n.waiter("timers", "run", "新年").must(t)
	slot := tape.slot(timer.ID)
	if slot.Timer.Reason != "by_hand" || tape.ended(slot.TaskID, "answered").Task.Level != 0 {
		t.Errorf("run by hand: %+v", slot.Timer)
	}
	for _, c := range []struct{ want, args string }{
		{"five", "--cron|every day|x"},
		{"never matches", "--cron|0 0 30 2 *|x"},
		{"has passed", "--at|2020-01-01 00:00|x"},
		{"no duration", "--in=-5m|x"},
		{"at least 1m", "--every|1s|x"},
		{"no time zone", "--in|5m|--zone|Beijing|x"},
		{"no such channel", "--in|5m|--channel|fax|x"},
		{"says nothing", "--in|5m| "},
		{"when it is due", "x"},
	} {
		got := n.waiter(append([]string{"timers", "add"}, strings.Split(c.args, "|")...)...)
		if got.code != 1 || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%s: exit %d, %s", c.args, got.code, got.stderr)
		}
	}
	n.waiter("timers", "remove", timer.ID).must(t)
	if got := n.waiter("timers", "remove", timer.ID); got.code != 1 {
		t.Errorf("removed twice: exit %d", got.code)
	}
	contains(t, n.waiter("timers").must(t).stdout, "no timers")
}

// TestTimerKilled kills the node again and again right after an input of a timer was accepted, before or after that is
// recorded: each slot is one task, and the timer counts just those.
func TestTimerKilled(t *testing.T) {
	n, v := withVendor(t, providertest.Step{Text: []string{"Done."}})
	n.waiter("config", "set", "core.timers.min_interval", "1s").must(t)
	timer := n.addTimer("--every", "1s", "--overlap", "queue", "--name", "ticks", "tick")
	tasks := map[string]string{} // slot to task
	note := func(r *tape) {
		for _, e := range r.all(func(e *api.Event) bool { return e.Timer != nil && e.Timer.Outcome == "ran" }) {
			slot := e.Timer.Slot.String()
			if other := tasks[slot]; other != "" && other != e.TaskID {
				t.Errorf("the slot %s is %s and %s", slot, other, e.TaskID)
			}
			tasks[slot] = e.TaskID
		}
	}
	for range rounds(4, 100) {
		tape := n.replay()
		tape.await("an input of the timer", func(e *api.Event) bool {
			return e.Type == api.EventRawInput && strings.HasPrefix(e.Text, "The timer")
		})
		n.kill()
		<-tape.over
		note(tape)
		n.start()
	}
	n.waiter("timers", "pause", timer.ID).must(t)
	tape := n.replay()
	last := n.timers()[timer.ID]
	if n.input(last.LastTask).State != "ended" {
		tape.change(last.LastTask, "ended")
	}
	note(tape)
	seen := map[string]bool{}
	for _, a := range v.bodies() {
		_, head, ok := strings.Cut(string(a.Messages[len(a.Messages)-1].Content), " is due: ")
		if !ok {
			t.Fatalf("the model was asked %s", a.Messages[len(a.Messages)-1].Content)
		}
		head, _, _ = strings.Cut(head, " (")
		seen[head] = true
	}
	if uint64(len(seen)) != last.Runs || len(tasks) > len(seen) || last.Runs < 4 {
		t.Errorf("%d slots reached the model, %d were told of, the timer counts %d: %v", len(seen), len(tasks), last.Runs, last)
	}
}
