package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"homeagent/internal/client"
	"homeagent/messages/api"
	"homeagent/providers/providertest"
)

// chat is an interactive conversation at a console.
type chat struct {
	t     *testing.T
	in    io.Writer
	lines chan string
}

// chat begins one; it ends with the test.
func (n *node) chat(t *testing.T) *chat {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "waiter"), "chat", "--data", n.data)
	cmd.Env = cleanEnv()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &chat{t: t, in: in, lines: make(chan string, 256)}
	go func() {
		defer close(c.lines)
		sc := bufio.NewScanner(out)
		for sc.Scan() {
			c.lines <- sc.Text()
		}
	}()
	t.Cleanup(func() {
		_ = in.Close() // it ends the chat, which may have ended
		for range c.lines {
		}
		_ = cmd.Wait()
	})
	return c
}

// types one line.
func (c *chat) types(line string) {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		c.t.Fatal(err)
	}
}

// shows waits until all parts were shown, in order, and returns what was.
func (c *chat) shows(parts ...string) string {
	c.t.Helper()
	var all []string
	ctx := bounded(c.t)
	for len(parts) > 0 {
		select {
		case line, ok := <-c.lines:
			if !ok {
				c.t.Fatalf("the chat ended without %q:\n%s", parts, strings.Join(all, "\n"))
			}
			all = append(all, line)
			for len(parts) > 0 && strings.Contains(line, parts[0]) {
				parts = parts[1:]
			}
		case <-ctx.Done():
			c.t.Fatalf("the chat does not show %q:\n%s", parts, strings.Join(all, "\n"))
		}
	}
	return strings.Join(all, "\n")
}

// pending are the questions that wait, which must be so many.
func (n *node) pending(count int) []api.Approval {
	n.t.Helper()
	l, err := n.dial().Approvals(bounded(n.t), false, "")
	if err != nil || len(l.Approvals) != count {
		n.t.Fatalf("%d questions wait, not %d: %+v %v", len(l.Approvals), count, l, err)
	}
	return l.Approvals
}

// question waits for the event that a call waits for a person.
func (r *tape) question(task string) api.Approval {
	r.t.Helper()
	return *r.await("a question of "+task, func(e *api.Event) bool {
		return e.Approval != nil && e.TaskID == task && e.Approval.State == "pending"
	}).Approval
}

// cautious is a node whose owner is asked before anything is written.
func cautious(t *testing.T, steps ...providertest.Step) (*node, *vendor) {
	t.Helper()
	n, v := withVendor(t, steps...)
	n.waiter("config", "set", "core.guard.owner.write", "ask").must(t)
	return n, v
}

// file is what a file of the agent holds; "" where there is none.
func (n *node) file(name string) string {
	n.t.Helper()
	b, err := os.ReadFile(filepath.Join(n.data, "files", name))
	if err != nil && !os.IsNotExist(err) {
		n.t.Fatal(err)
	}
	return string(b)
}

// after is a step that answers once calls have results.
func after(match, text string) providertest.Step {
	return providertest.Step{Match: match, AfterTool: &yes, Text: []string{text}}
}

// TestApprovalAllowed asks a person before a call: it is shown whole, the turn makes place for others, the question
// outlives a power cut, and the call runs once.
func TestApprovalAllowed(t *testing.T) {
	call := uses("files_append", `{"path":"log.txt","content":"once\n"}`)
	call.Match = "note"
	n, v := cautious(t, call, after("note", "Noted."), providertest.Step{Match: "hello", Text: []string{"Hi."}})
	tape, c := n.tape(""), n.chat(t)
	c.types("please note it")
	shown := c.shows("files_append", "log.txt", `once\n`, "/allow")
	parked := tape.await("the park", func(e *api.Event) bool { return e.Task != nil && e.Task.Change == "parked" })
	task := parked.TaskID
	a := n.pending(1)[0]
	contains(t, shown, a.ID)
	contains(t, n.waiter("approvals").must(t).stdout, a.ID, "pending", "files_append", `"path": "log.txt"`, `"content": "once\n"`, "owner", task)
	if len(parked.Task.Approvals) != 1 || parked.Task.Approvals[0] != a.ID || a.TaskID != task || a.Class != "write" || len(a.Principals) != 1 || a.Expires.IsZero() {
		t.Errorf("parked as %+v for %+v", parked.Task, a)
	}
	if got := n.ask("hello"); got.Text != "Hi." {
		t.Errorf("meanwhile: %+v", got)
	}
	if got := n.input(task); got.State != "parked" {
		t.Errorf("the task is %+v", got)
	}
	for name := range n.actors() {
		if strings.HasSuffix(name, task) {
			t.Errorf("a parked turn has an actor: %s", name)
		}
	}

	n.kill()
	<-tape.over
	n.start()
	second := n.replay()
	if again := n.pending(1)[0]; again.ID != a.ID || again.Hash != a.Hash {
		t.Errorf("after the power cut it is %+v", again)
	}
	if got := n.input(task); got.State != "parked" || n.file("log.txt") != "" {
		t.Errorf("after the power cut: %+v, the file holds %q", got, n.file("log.txt"))
	}
	if _, err := n.dial().Decide(bounded(t), a.ID, strings.Repeat("0", len(a.Hash)), true, ""); client.Code(err) != "approval_changed" {
		t.Errorf("a word for another call: %v", err)
	}
	contains(t, n.waiter("approvals", "allow", a.ID).must(t).stdout, "allowed")
	end := second.ended(task, "answered")
	if end.Task.Text != "Noted." || n.file("log.txt") != "once\n" || second.starts(task, "files_append") != 1 {
		t.Errorf("it ended as %+v; the file holds %q", end.Task, n.file("log.txt"))
	}
	second.once(task, "ended")
	c.shows("Noted.") // the chat has heard nothing of it while the node was away
	if got := n.waiter("approvals", "deny", a.ID); got.code != 1 || !strings.Contains(got.stderr, "decided") {
		t.Errorf("a second word: %d %s", got.code, got.stderr)
	}
	n.pending(0)
	n.kill()
	n.start()
	if n.file("log.txt") != "once\n" || n.input(task).End != "answered" {
		t.Errorf("after another power cut the file holds %q", n.file("log.txt"))
	}
	v.paired()
}

// TestApprovalDenied tells the model that it may not, and why.
func TestApprovalDenied(t *testing.T) {
	n, v := cautious(t, uses("files_write", `{"path":"a.txt","content":"a"}`), says("As you like."))
	tape := n.tape("")
	task := n.say("write it")
	a := tape.question(task)
	tape.change(task, "parked")
	contains(t, n.waiter("approvals", "deny", a.ID, "--note", "not on a Sunday").must(t).stdout, "denied")
	tape.ended(task, "answered")
	bodies := v.bodies()
	_, results := bodies[len(bodies)-1].results()
	contains(t, results[0], "denied", "not on a Sunday")
	if n.file("a.txt") != "" {
		t.Errorf("it wrote %q", n.file("a.txt"))
	}
	got, err := n.dial().Approval(bounded(t), a.ID)
	if err != nil || got.State != "denied" || got.DecidedBy == nil || got.DecidedBy.ID != "owner" || got.Note != "not on a Sunday" {
		t.Errorf("it is kept as %+v %v", got, err)
	}
}

// TestR12Approvals has two calls wait: a word is for the one that was shown, whatever came and went between; a call that
// comes again is another question; programs may not decide, nor a person who was not named; what nobody decides expires.
func TestR12Approvals(t *testing.T) {
	two := uses("files_write", `{"path":"a.txt","content":"a"}`, "files_append", `{"path":"b.txt","content":"b"}`)
	two.Match = "both"
	again := uses("files_append", `{"path":"b.txt","content":"b"}`)
	again.Match, again.Tools[0].ID = "both", "again"
	third := uses("files_write", `{"path":"c.txt","content":"c"}`)
	third.Match = "third"
	n, v := cautious(t, two, again, third, after("both", "Both."), after("third", "Third."))
	robot, anna := n.holder("robot"), n.holder("anna", "--principal", "person")
	tape := n.tape("")
	task := n.say("do both")
	first := tape.question(task)
	// Calls that may not run beside each other are asked about one after another.
	tape.change(task, "parked")
	other := n.say("do the third")
	tape.change(other, "parked")
	shown := n.pending(2)
	if shown[0].ID != first.ID || shown[1].TaskID != other {
		t.Errorf("shown are %+v", shown)
	}
	for _, h := range []holder{robot, anna} {
		if r := h.waiter("approvals", "allow", first.ID); r.code != 2 || !strings.Contains(r.stderr, "not_allowed") {
			t.Errorf("somebody else decides: %d %s%s", r.code, r.stdout, r.stderr)
		}
	}
	n.waiter("config", "set", "core.guard.deciders", "person:anna").must(t)
	if r := robot.waiter("approvals", "allow", first.ID); r.code != 2 {
		t.Errorf("a program decides: %d %s%s", r.code, r.stdout, r.stderr)
	}
	contains(t, anna.waiter("approvals", "allow", shown[1].ID).must(t).stdout, "allowed")
	tape.ended(other, "answered")
	if n.file("a.txt")+n.file("b.txt") != "" || n.file("c.txt") != "c" {
		t.Errorf("the word for the third let others run: %q %q %q", n.file("a.txt"), n.file("b.txt"), n.file("c.txt"))
	}
	// The queue has changed since it was shown, and the node was away.
	n.kill()
	<-tape.over
	n.start()
	tape = n.replay()
	contains(t, n.waiter("approvals", "allow", first.ID).must(t).stdout, "allowed")
	second := tape.question(task)
	if n.file("a.txt") != "a" || n.file("b.txt") != "" || second.Tool != "files_append" {
		t.Errorf("the first word let run %q %q; then %+v", n.file("a.txt"), n.file("b.txt"), second)
	}
	contains(t, n.waiter("approvals", "allow", second.ID).must(t).stdout, "allowed")
	// The very same call in the next round is another one.
	repeat := tape.await("the question about it again", func(e *api.Event) bool {
		return e.Approval != nil && e.Approval.State == "pending" && e.Approval.ID != first.ID && e.Approval.ID != second.ID
	}).Approval
	if repeat.Tool != "files_append" || repeat.CallID == second.CallID || n.file("b.txt") != "b" {
		t.Errorf("the same call again is %+v; the file holds %q", repeat, n.file("b.txt"))
	}
	n.waiter("config", "set", "core.guard.approval_expiry", "1s").must(t)
	contains(t, n.waiter("approvals", "deny", repeat.ID).must(t).stdout, "denied")
	tape.ended(task, "answered")
	if n.file("b.txt") != "b" {
		t.Errorf("the file holds %q", n.file("b.txt"))
	}

	v.plays(third, after("third", "Then not."))
	late := n.say("do the third")
	asked := tape.question(late)
	over := tape.await("the expiry", func(e *api.Event) bool {
		return e.Approval != nil && e.Approval.ID == asked.ID && e.Approval.State == "expired"
	})
	if over.Approval.Hash != asked.Hash {
		t.Errorf("it expired as %+v", over.Approval)
	}
	if e := tape.ended(late, "answered"); e.Task.Text != "Then not." {
		t.Errorf("it ended as %+v", e.Task)
	}
	if r := n.waiter("approvals", "allow", asked.ID); r.code != 1 {
		t.Errorf("a word too late: %d %s", r.code, r.stdout)
	}
	v.paired()
}

// TestApprovalReleased ends turns that wait for a person: the question goes with them, and a late word lets nothing run.
func TestApprovalReleased(t *testing.T) {
	for name, end := range map[string]func(n *node, task string){
		"stop":   func(n *node, _ string) { n.waiter("stop").must(n.t) },
		"cancel": func(n *node, task string) { n.waiter("queue", "cancel", task).must(n.t) },
	} {
		t.Run(name, func(t *testing.T) {
			n, _ := cautious(t, uses("files_write", `{"path":"a.txt","content":"a"}`), says("Here."))
			tape := n.tape("")
			task := n.say("write it")
			a := tape.question(task)
			tape.change(task, "parked")
			end(n, task)
			tape.ended(task, "stopped")
			over := tape.await("the release", func(e *api.Event) bool { return e.Approval != nil && e.Approval.State == "released" })
			if over.Approval.ID != a.ID || over.Approval.ReleasedFor != "ended" {
				t.Errorf("released as %+v", over.Approval)
			}
			if r := n.waiter("approvals", "allow", a.ID); r.code != 1 {
				t.Errorf("a late word: %d %s", r.code, r.stdout)
			}
			if got := n.ask("are you there?"); got.Text != "Here." || n.file("a.txt") != "" {
				t.Errorf("afterwards: %+v, the file holds %q", got, n.file("a.txt"))
			}
		})
	}
}

// TestTaintedTurnAsks lets a turn write that has read nothing foreign, and asks before one writes that has.
func TestTaintedTurnAsks(t *testing.T) {
	n, v := withVendor(t)
	p := n.page()
	p.release()
	v.plays(uses("files_write", `{"path":"own.txt","content":"own"}`), says("Written."))
	if got := n.ask("write it"); got.Text != "Written." || n.file("own.txt") != "own" {
		t.Errorf("a turn of its own: %+v", got)
	}
	v.plays(uses("web_fetch", p.fetch("/recipe")), uses("files_write", `{"path":"read.txt","content":"read"}`), says("Copied."))
	tape := n.tape("")
	task := n.say("copy the page")
	a := tape.question(task)
	tape.change(task, "parked")
	if a.Taint != "foreign" || a.Tool != "files_write" || a.Reason == "" || n.file("read.txt") != "" {
		t.Errorf("the question is %+v", a)
	}
	n.waiter("approvals", "allow", a.ID).must(t)
	tape.ended(task, "answered")
	if n.file("read.txt") != "read" {
		t.Errorf("the file holds %q", n.file("read.txt"))
	}
}
