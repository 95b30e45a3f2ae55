package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"homeagent/internal/client"
	"homeagent/internal/client/clienttest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"waiter": main})
}

// TestScripts runs testdata/*.txtar: this very binary poses as waiter and speaks to a scripted node. The command
//
//	answer METHOD PATH FILE    lets the node answer a route with a file
//	refuse METHOD PATH STATUS FILE
//	asked FILE                 compares what was asked, streams left out, with a file
//
// drive the node; $NODE and $TOKEN name it.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE") != "",
		Setup: func(e *testscript.Env) error {
			n := clienttest.Start()
			n.Script = script
			e.Defer(n.Close)
			token, err := clienttest.TokenFile(e.WorkDir)
			if err != nil {
				return err
			}
			e.Values["node"] = n
			e.Vars = append(e.Vars, "NODE="+n.URL, "TOKEN="+token, "HOME="+e.WorkDir, "TZ=UTC")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"answer": respond, "refuse": refuse, "asked": asked,
		},
	})
}

// script answers by what was said.
func script(in client.Submit, id string) []client.Event {
	d, changed := clienttest.Delta, clienttest.Changed
	switch in.Text {
	case "fail":
		return []client.Event{d("half an ans"), clienttest.Failed("no_source", "No model is configured.")}
	case "wrong key":
		return []client.Event{clienttest.Trouble("The key is wrong.", "Set another."), clienttest.Failed("auth", "The key is wrong.")}
	case "second try":
		return []client.Event{clienttest.Trouble("Too long.", ""), d("yes"), clienttest.Answered("yes")}
	case "interrupt me":
		return []client.Event{
			d("one "), changed("suspended", "other"), changed("resumed", ""), d("one "), d("two"), clienttest.Answered("one two"),
		}
	case "use a tool":
		return []client.Event{d("Looking."), clienttest.Round(), clienttest.Tool("find"), d("Found."), clienttest.Round(), clienttest.Answered("Found.")}
	case "ask me":
		return []client.Event{asking("pending"), changed("parked", "")}
	case "asked and allowed":
		return []client.Event{asking("pending"), asking("allowed"), clienttest.Answered("done")}
	case "change":
		return []client.Event{d("rude"), clienttest.Answered("polite")}
	case "escape":
		return []client.Event{d("\x1b[2Jred"), clienttest.Answered("\x1b[2Jred")}
	}
	return clienttest.Echo(in, id)
}

// asking is an approval of a call that tries to hide what it does.
func asking(state string) client.Event {
	return client.Event{Type: "approval", Approval: &client.Approval{
		ID: "ap-1", State: state, TaskID: "in-1", Agent: "main", Tool: "shell", Class: "exec", Hash: "h1",
		Arguments:  json.RawMessage("{\"argv\":[\"rm\",\"-rf\",\"/\u202e\"]}"),
		Principals: []client.Principal{{ID: "owner", Kind: "owner"}}, Channel: "cli", Conversation: "main", Reason: "Tools of class exec ask.",
	}}
}

func node(ts *testscript.TestScript) *clienttest.Node { return ts.Value("node").(*clienttest.Node) }

func load(ts *testscript.TestScript, file string, into any) {
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(file)), into))
}

func respond(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: answer METHOD PATH FILE")
	}
	var v any
	load(ts, args[2], &v)
	node(ts).Answer(args[0]+" "+args[1], v)
}

func refuse(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: refuse METHOD PATH STATUS FILE")
	}
	status, err := strconv.Atoi(args[2])
	ts.Check(err)
	e := new(client.Refusal)
	load(ts, args[3], e)
	node(ts).Refuse(args[0]+" "+args[1], status, e)
}

func asked(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: asked FILE")
	}
	var b strings.Builder
	for _, r := range node(ts).Asked() {
		path := r.Path
		if r.Query != "" {
			path += "?" + r.Query
		}
		fmt.Fprintln(&b, strings.TrimSpace(r.Method+" "+path+" "+r.Body))
	}
	want := ts.ReadFile(args[0])
	if got := b.String(); got != want {
		ts.Fatalf("asked:\n%swant:\n%s", got, want)
	}
}

// Ctrl-C once stops, twice leaves; neither is said to the model.
func TestInterrupts(t *testing.T) {
	n := clienttest.New(t)
	n.Script = func(client.Submit, string) []client.Event { return nil } // goes on for ever
	n.Answer("POST /api/v1/stop", client.Stopped{Stopped: 1})
	token, err := clienttest.TokenFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	presses := make(chan os.Signal)
	var out, errout strings.Builder
	c := &console{ctx: context.Background(), in: strings.NewReader(""), out: &out, errout: &errout, env: os.Getenv, interrupts: presses}
	done := make(chan int)
	go func() { done <- run(c, []string{"--node", n.URL, "--token-file", token, "chat", "go on"}) }()
	presses <- os.Interrupt
	presses <- os.Interrupt
	if code := <-done; code != exitFailed {
		t.Errorf("exit %d, %s", code, errout.String())
	}
	stops := 0
	for _, r := range n.Asked() {
		if r.Path == "/api/v1/stop" {
			stops++
		}
	}
	if stops != 1 {
		t.Errorf("%d stops", stops)
	}
}

func TestExitCodes(t *testing.T) {
	n := clienttest.New(t)
	token, err := clienttest.TokenFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for status, code := range map[int]string{404: "gone", 409: "clash", 429: "busy", 403: "no", 503: "later"} {
		n.Refuse("GET /api/v1/actors/"+code, status, &client.Refusal{Code: code, Message: "m"})
	}
	for _, c := range []struct {
		args string
		want int
	}{
		{"send hi", 0},
		{"send --wait hi", 0},
		{"send --wait fail", 1},
		{"chat fail", 1},
		{"inspect gone", 1},
		{"inspect clash", 1},
		{"inspect busy", 1},
		{"inspect no", 2},
		{"inspect later", 2},
		{"inspect", 2},
		{"send --mode now hi", 2},
		{"--help", 0},
	} {
		n.Script = script
		var out, errout strings.Builder
		con := &console{ctx: t.Context(), in: strings.NewReader(""), out: &out, errout: &errout, env: os.Getenv}
		args := append([]string{"--node", n.URL, "--token-file", token}, strings.Fields(c.args)...)
		if got := run(con, args); got != c.want {
			t.Errorf("%s: exit %d, want %d; %s", c.args, got, c.want, errout.String())
		}
	}
}

func TestPaneKeepsLinesApart(t *testing.T) {
	var b strings.Builder
	p := &pane{w: &b}
	answer, note := p.as("answer"), p.as("note")
	for _, s := range []struct {
		h    hand
		text string
	}{
		{answer, "one "}, {answer, "two"}, {note, "· tool\n"}, {note, "· tool\n"}, {answer, ""}, {answer, "three\n"}, {note, "four"},
	} {
		if _, err := s.h.Write([]byte(s.text)); err != nil {
			t.Fatal(err)
		}
	}
	p.end()
	p.end()
	if want := "one two\n· tool\n· tool\nthree\nfour\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestCtrlCEndsOtherCommands(t *testing.T) {
	n := clienttest.New(t)
	token, err := clienttest.TokenFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	presses := make(chan os.Signal)
	var out, errout strings.Builder
	c := &console{ctx: t.Context(), in: strings.NewReader(""), out: &out, errout: &errout, env: os.Getenv, interrupts: presses}
	done := make(chan int)
	go func() { done <- run(c, []string{"--node", n.URL, "--token-file", token, "events"}) }()
	presses <- os.Interrupt
	if code := <-done; code != exitOK && code != exitFailed { // failed when it had not connected yet
		t.Errorf("exit %d, %s", code, errout.String())
	}
}

func TestWidths(t *testing.T) {
	for s, want := range map[string]int{"abc": 3, "管家": 4, "é": 1, "e\u0301": 1, "ｆ": 2, "🙂": 2, "": 0} {
		if got := columns(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"short", 10, "short"}, {"a  b\nc", 10, "a b c"}, {"0123456789", 5, "0123…"}, {"管家管家", 6, "管家…"}, {"管家", 4, "管家"},
	} {
		if got := short(c.in, c.n); got != c.want || columns(got) > c.n {
			t.Errorf("%q: %q", c.in, got)
		}
	}
	if got := clean("a\x1b[31mb\x07\nc\u009b"); got != "a·[31mb·\nc·" {
		t.Errorf("%q", got)
	}
}

func TestLogIsFollowedOverRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "homed.log")
	if err := os.WriteFile(path, []byte(strings.Repeat("old line\n", 10)+"last\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := skipTo(f, 12); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if n, _ := f.Read(b); string(b[:n]) != "last\n" {
		t.Errorf("the end is %q", b[:n])
	}
	if _, ok := rotated(path, f); ok {
		t.Error("the same file counts as another")
	}
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if _, ok := rotated(path, f); ok {
		t.Error("there is no new file yet")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	next, ok := rotated(path, f)
	if !ok {
		t.Fatal("the new file was not seen")
	}
	_ = next.Close()
}
