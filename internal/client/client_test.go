package client

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"homeagent/internal/client/clienttest"
	"homeagent/messages/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, n *clienttest.Node) *Client {
	t.Helper()
	token, err := clienttest.TokenFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(Options{Node: n.URL, TokenFile: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// paper notes what is shown.
type paper struct{ lines []string }

func (p *paper) add(s string) { p.lines = append(p.lines, s) }

func (p *paper) Text(task, piece string)   { p.add(task + " says " + piece) }
func (p *paper) Replace(task, text string) { p.add(task + " replaces " + text) }
func (p *paper) Note(n Note)               { p.add(n.Task + " " + n.Kind + " " + n.Text) }
func (p *paper) End(t Task)                { p.add(t.InputID + " ends " + t.End) }

func TestSession(t *testing.T) {
	d, changed, tool := clienttest.Delta, clienttest.Changed, clienttest.Tool
	answered := clienttest.Answered
	of := func(task string, e api.Event) api.Event {
		e.TaskID = task
		return e
	}
	for _, c := range []struct {
		name   string
		script []api.Event
		want   string
	}{
		{"plain", []api.Event{d("a"), d("b"), answered("ab")}, "in-1 says a|in-1 says b|in-1 ends answered"},
		{"not streamed", []api.Event{answered("ab")}, "in-1 says ab|in-1 ends answered"},
		{
			"interrupted and made again",
			[]api.Event{d("a"), d("b"), changed("suspended", "x"), changed("resumed", ""), d("a"), d("bc"), answered("abc")},
			"in-1 says a|in-1 says b|in-1 suspended x|in-1 resumed |in-1 says c|in-1 ends answered",
		},
		{
			"made again and different",
			[]api.Event{d("a"), changed("suspended", "x"), d("z"), answered("z")},
			"in-1 says a|in-1 suspended x|in-1 replaces z|in-1 ends answered",
		},
		{
			"round with a tool",
			[]api.Event{d("I look"), clienttest.Round(), tool("find"), d("found"), clienttest.Round(), answered("found")},
			"in-1 says I look|in-1 tool find|in-1 round |in-1 says found|in-1 ends answered",
		},
		{"changed at the end", []api.Event{d("a"), answered("b")}, "in-1 says a|in-1 replaces b|in-1 ends answered"},
		{"failed", []api.Event{d("a"), clienttest.Failed("no_source", "no")}, "in-1 says a|in-1 ends failed"},
		{
			"other tasks are not shown",
			[]api.Event{of("other", d("x")), d("a"), of("other", answered("x")), answered("a")},
			"in-1 says a|in-1 ends answered",
		},
		{
			"joined another",
			[]api.Event{
				changed("steered", "other"), of("other", d("both")), of("other", answered("both")),
				{Type: api.EventTask, Task: &api.TaskChange{Change: "ended", End: "answered", By: "other"}},
			},
			"in-1 steered other|in-1 says both|in-1 ends answered",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := clienttest.New(t)
			n.Script = func(api.Submit, string) []api.Event { return c.script }
			s, err := open(t, n).Session(t.Context(), SessionOptions{Channel: "cli", Conversation: "main"})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			sent, err := s.Send(t.Context(), "hi", "")
			if err != nil {
				t.Fatal(err)
			}
			p := &paper{}
			got, err := s.Follow(t.Context(), sent.InputID, p)
			if err != nil || got.InputID != "in-1" {
				t.Fatalf("%+v, %v", got, err)
			}
			if have := strings.Join(p.lines, "|"); have != c.want {
				t.Errorf("shown %s\nwant  %s", have, c.want)
			}
		})
	}
}

// A whole conversation shows what others say in it too, and a joined answer once.
func TestWholeConversation(t *testing.T) {
	n := clienttest.New(t)
	n.Script = func(api.Submit, string) []api.Event {
		first := clienttest.Delta("fi")
		first.TaskID = "other"
		end := clienttest.Answered("first")
		end.TaskID = "other"
		joined := clienttest.Answered("first")
		joined.Task.By = "other"
		return []api.Event{first, end, joined, {
			Type: api.EventOutput, TaskID: "job", Output: &api.Output{Content: []api.Block{{Type: "text", Text: "tea is ready"}}},
		}}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := open(t, n).Session(ctx, SessionOptions{Channel: "cli", Conversation: "main"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Send(ctx, "hi", ""); err != nil {
		t.Fatal(err)
	}
	p := &stopper{cancel: cancel}
	if _, err := s.Follow(ctx, "", p); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	want := "other says fi|other says rst|other ends answered|in-1 ends answered|job output tea is ready"
	if have := strings.Join(p.lines, "|"); have != want {
		t.Errorf("shown %s\nwant  %s", have, want)
	}
}

// stopper ends the session at the first output.
type stopper struct {
	paper
	cancel func()
}

func (s *stopper) Note(n Note) {
	s.paper.Note(n)
	if n.Kind == "output" {
		s.cancel()
	}
}

func TestStreamGoesOnAfterALoss(t *testing.T) {
	n := clienttest.New(t)
	s, err := open(t, n).Events(t.Context(), StreamOptions{Types: []string{"content_delta"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	next := func() Frame {
		t.Helper()
		f, err := s.Next()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if next().Ready == nil {
		t.Fatal("the first frame is not ready")
	}
	n.Publish(api.Event{Type: "raw_input"})
	n.Publish(clienttest.Delta("one"))
	if f := next(); f.Event == nil || f.Event.Text != "one" || f.Event.Sequence != 2 {
		t.Fatalf("%+v", f)
	}
	n.Drop()
	if next().Ready == nil {
		t.Fatal("a new connection does not say ready")
	}
	n.Publish(clienttest.Delta("two"))
	if f := next(); f.Event.Text != "two" {
		t.Fatalf("%+v", f)
	}
	if ids := n.LastEventIDs(); len(ids) != 2 || ids[0] != "" || ids[1] != "1000-2" {
		t.Errorf("went on after %q", ids)
	}
}

func TestOnceEndsWithItsConnection(t *testing.T) {
	n := clienttest.New(t)
	s, err := open(t, n).Events(t.Context(), StreamOptions{Once: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if f, err := s.Next(); err != nil || f.Ready == nil {
		t.Fatal(f, err)
	}
	n.Drop()
	if _, err := s.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("got %v", err)
	}
}

func TestErrors(t *testing.T) {
	n := clienttest.New(t)
	n.Refuse("GET /api/v1/nodes", 503, &api.Error{
		Code: "disk_low", Message: "No room.", Hint: "Make some.", Details: map[string]string{"path": "/x"},
	})
	c := open(t, n)
	_, err := c.Nodes(t.Context())
	var e *Error
	if !errors.As(err, &e) || e.Status != 503 || e.Code != "disk_low" || e.Hint != "Make some." || e.Details["path"] != "/x" ||
		err.Error() != "No room. Make some." || Code(err) != "disk_low" {
		t.Errorf("got %#v", err)
	}
	for text, e := range map[string]body{
		"no such key; did you mean b?":      {Message: "no such key", Hint: "Did you mean b?"},
		"There is none. List them.":         {Message: "There is none.", Hint: "list them."},
		"no such path; GET /x shows all.":   {Message: "no such path", Hint: "GET /x shows all."},
		"It is full. `waiter queue` tells.": {Message: "It is full.", Hint: "`waiter queue` tells."},
		"busy":                              {Code: "busy"},
	} {
		if got := (&Error{body: e}).Error(); got != text {
			t.Errorf("%q, want %q", got, text)
		}
	}
	bad := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(bad, []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := Open(Options{Node: n.URL, TokenFile: bad})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Status(t.Context()); Code(err) != "unauthorized" {
		t.Errorf("got %v", err)
	}
	if _, err := other.Events(t.Context(), StreamOptions{}); Code(err) != "unauthorized" {
		t.Errorf("a stream: got %v", err)
	}
	n.Close()
	if _, err := c.Nodes(t.Context()); !errors.Is(err, ErrUnreachable) ||
		!strings.Contains(err.Error(), "connect") || strings.Contains(err.Error(), "/api/v1") || strings.Count(err.Error(), "127.0.0.1") > 1 {
		t.Errorf("got %v", err)
	}
	if _, err := Open(Options{Data: t.TempDir()}); !errors.Is(err, ErrNotRunning) {
		t.Errorf("got %v", err)
	}
	for _, o := range []Options{{Node: "ftp://x", TokenFile: bad}, {Node: n.URL}, {Node: n.URL, TokenFile: bad + "x"}} {
		if _, err := Open(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

func TestPathsAreEscaped(t *testing.T) {
	n := clienttest.New(t)
	c := open(t, n)
	_, _ = c.Actor(t.Context(), "agents/main/turn/a b?")
	_, _ = c.Order(t.Context(), "/agents/x/", "stop")
	_, _ = c.Memory(t.Context(), MemoryQuery{Text: "a&b", Limit: 3})
	_, _ = c.DestroyAgent(t.Context(), "cook", true)
	v := "5m"
	_, _ = c.SetConfig(t.Context(), map[string]*string{"a.b": &v, "c.d": nil})
	var got []string
	for _, r := range n.Asked() {
		got = append(got, r.Method+" "+r.Path+"?"+r.Query+" "+r.Body)
	}
	want := []string{
		"GET /api/v1/actors/agents/main/turn/a b?? ", "POST /api/v1/actors/agents/x/stop? ",
		"GET /api/v1/memory?limit=3&text=a%26b ", "DELETE /api/v1/agents/cook?drop=true ",
		`PUT /api/v1/config? {"values":{"a.b":"5m","c.d":null}}`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestDialable(t *testing.T) {
	for in, want := range map[string]string{
		"127.0.0.1:8765": "127.0.0.1:8765", "0.0.0.0:1": "127.0.0.1:1", "[::]:1": "127.0.0.1:1", "192.168.1.5:2": "192.168.1.5:2",
	} {
		if got := dialable(in); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}
