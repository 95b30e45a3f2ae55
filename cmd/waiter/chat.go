package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"homeagent/internal/client"
)

type sendCmd struct {
	Text         []string `arg:"" help:"The input."`
	Agent        string   `help:"Agent; default main." placeholder:"NAME"`
	Channel      string   `default:"cli" help:"Channel."`
	Conversation string   `default:"main" help:"Conversation."`
	Level        level    `help:"Level 0 to 3; default by the channel."`
	Mode         mode     `help:"How it meets a running answer: steer (join it), queue or interrupt; default by the channel."`
	Key          string   `help:"Idempotency key." placeholder:"KEY"`
	Wait         bool     `help:"Wait for the answer."`
	Attach       []string `type:"existingfile" help:"Pictures and sound files to send along." placeholder:"FILE"`
}

// attachments reads files as blocks of what their bytes, or their names, say.
func attachments(files []string) ([]client.Block, error) {
	var out []client.Block
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		media, _, _ := strings.Cut(http.DetectContentType(data), ";")
		kind, _, _ := strings.Cut(media, "/")
		if kind != "image" && kind != "audio" {
			media, _, _ = strings.Cut(mime.TypeByExtension(filepath.Ext(file)), ";")
			kind, _, _ = strings.Cut(media, "/")
		}
		if kind != "image" && kind != "audio" {
			return nil, fmt.Errorf("%s is neither a picture nor sound", file)
		}
		out = append(out, client.Block{Type: kind, MediaType: media, Data: data})
	}
	return out, nil
}

func (s *sendCmd) Run(c *console, node *client.Client) error {
	in := client.Submit{
		Text: strings.Join(s.Text, " "), Agent: s.Agent, Channel: s.Channel, Conversation: s.Conversation, Mode: string(s.Mode),
		IdempotencyKey: s.Key, Wait: s.Wait,
	}
	if s.Level.set {
		in.Level = client.Level(s.Level.n)
	}
	var err error
	if in.Blocks, err = attachments(s.Attach); err != nil {
		return err
	}
	got, err := node.Submit(c.ctx, in)
	if err != nil {
		return err
	}
	if err := c.show(got, func() {
		switch {
		case got.Task != nil && got.Task.End == "answered":
			c.printf("%s\n", clean(got.Task.Text))
			return
		case got.Task != nil:
			_, _ = fmt.Fprintf(c.errout, "waiter: %s\n", endOf(got.Task))
			return
		case got.TimedOut:
			_, _ = fmt.Fprintln(c.errout, "waiter: no answer in time; it goes on, see waiter queue")
		}
		c.printf("%s %s", got.InputID, got.Outcome)
		if got.Position > 0 {
			c.printf(" %d", got.Position)
		}
		c.printf("\n")
	}); err != nil {
		return err
	}
	if s.Wait && (got.Task == nil || got.Task.End != "answered") {
		return errUnwell
	}
	return nil
}

type chatCmd struct {
	Text         []string `arg:"" optional:"" help:"What to say; without it, a conversation."`
	Agent        string   `help:"Agent; default main." placeholder:"NAME"`
	Conversation string   `default:"main" help:"Conversation."`
	Mode         mode     `help:"How it meets a running answer: steer (join it), queue or interrupt; default steer."`
}

// mode is how an input meets a running answer; empty leaves it to the channel.
type mode string

// UnmarshalText takes the modes that there are.
func (m *mode) UnmarshalText(b []byte) error {
	switch string(b) {
	case "", "steer", "queue", "interrupt":
		*m = mode(b)
		return nil
	}
	return fmt.Errorf("there is no mode %q; use steer, queue or interrupt", b)
}

func (ch *chatCmd) Run(c *console, node *client.Client) error {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	s, err := node.Session(ctx, client.SessionOptions{Channel: "cli", Conversation: ch.Conversation, Agent: ch.Agent})
	if err != nil {
		return err
	}
	defer s.Close()
	if len(ch.Text) == 0 {
		return ch.talk(ctx, cancel, c, node, s)
	}
	return ch.once(ctx, cancel, c, s)
}

// once says one thing and writes the answer as it comes; nothing else goes to the output.
func (ch *chatCmd) once(ctx context.Context, cancel context.CancelFunc, c *console, s *client.Session) error {
	text := strings.Join(ch.Text, " ")
	if strings.HasPrefix(text, "/") && !forAgent(text) {
		return fmt.Errorf("%s is a command of the conversation: say it there, or use waiter %s", text, strings.TrimPrefix(text, "/"))
	}
	sent, err := s.Send(ctx, text, string(ch.Mode))
	if err != nil {
		return err
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		ch.interrupted(ctx, cancel, c, s)
	}()
	defer func() {
		cancel()
		<-left
	}()
	p := &pane{w: c.out}
	view := *c
	view.out = p.as("answer")
	to := &answer{c: &view, p: p}
	t, err := s.Follow(ctx, sent.InputID, to)
	if err != nil {
		p.end()
		return err
	}
	if c.json {
		return errors.Join(c.show(t, nil), unwell(t))
	}
	p.end()
	switch {
	case t.End != "answered":
		text := endOf(t)
		if to.trouble.Text == t.Text {
			text = advised(text, to.trouble.Hint)
		}
		_, _ = fmt.Fprintf(c.errout, "waiter: %s\n", text)
	case to.trouble.Text != "": // it ended well all the same
		_, _ = fmt.Fprintln(c.errout, c.paint(quiet, "· "+noteText(to.trouble)))
	}
	return unwell(t)
}

func unwell(t *client.Task) error {
	if t.End != "answered" {
		return errUnwell
	}
	return nil
}

// endOf tells how a task ended, for people. That it was stopped says all.
func endOf(t *client.Task) string {
	s := t.End
	if t.End == "stopped" && t.Reason == "stop" {
		return s
	}
	if t.Reason != "" && t.Reason != t.End {
		s += " (" + t.Reason + ")"
	}
	if t.Text != "" {
		s += ": " + clean(t.Text)
	}
	return s
}

// interrupted stops the agent at the first Ctrl-C and leaves at the second.
func (ch *chatCmd) interrupted(ctx context.Context, leave context.CancelFunc, c *console, s *client.Session) {
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-c.interrupts:
		}
		if n > 0 {
			leave()
			return
		}
		if _, err := s.Stop(ctx); err != nil {
			_, _ = fmt.Fprintf(c.errout, "waiter: %v\n", err)
		}
	}
}

// answer writes the text of one answer and says the rest on the error output.
type answer struct {
	c *console
	p *pane
	// trouble is the last error on the way. The end of the task tells it too, so it is not said before.
	trouble client.Note
}

func (a *answer) Text(_, piece string) {
	if !a.c.json {
		a.c.printf("%s", clean(piece))
	}
}

func (a *answer) Replace(task, text string) {
	a.Note(client.Note{Kind: "changed", Task: task})
	a.Text(task, text)
}

func (a *answer) Note(n client.Note) {
	text := noteText(n)
	if n.Kind == "approval" && !a.c.json {
		view := *a.c
		view.out = a.c.errout
		a.p.end()
		drawApproval(&view, n.Approval)
		text = "this call waits: waiter approvals allow " + visible(n.Approval.ID) + ", or deny"
	}
	if n.Kind == "error" {
		a.trouble, text = n, ""
	}
	if a.c.json || (text == "" && n.Kind != "round") {
		return
	}
	a.p.end()
	if text != "" {
		_, _ = fmt.Fprintln(a.c.errout, a.c.paint(quiet, "· "+text))
	}
}

func (*answer) End(client.Task) {}

// advised is what went wrong with what to do about it.
func advised(text, hint string) string {
	if hint == "" {
		return text
	}
	return strings.TrimSuffix(text, ".") + ". " + clean(hint)
}

// noteText is a note as a person reads it; empty for what need not be said.
func noteText(n client.Note) string {
	text := clean(n.Text)
	switch n.Kind {
	case "suspended":
		return "interrupted; it goes on afterwards"
	case "resumed":
		return "goes on"
	case "queued":
		return "waits for its turn"
	case "parked":
		return "waits for a person's word; other work goes on"
	case "approval_over":
		return visible(n.Approval.ID) + " is " + n.Approval.State
	case "tool":
		return "uses " + text
	case "tool_failed":
		return "failed: " + text
	case "error":
		return advised("error: "+text, n.Hint)
	case "changed":
		return "the answer was changed; here is the whole of it"
	case "gap":
		return "some events were missed"
	}
	return ""
}

// screen shows a whole conversation. As JSON it is one line for each task that has ended.
type screen struct {
	c *console
	p *pane

	mu    sync.Mutex
	ended map[string]bool
	// trouble is the last error that was shown of each task, which its end need not tell again.
	trouble map[string]string
	wake    chan struct{} // one token: a task has ended
	asks    *questions
}

func (s *screen) line(format string, args ...any) {
	if !s.c.json {
		_, _ = fmt.Fprintf(s.p.as("note"), format+"\n", args...)
	}
}

func (s *screen) Text(task, piece string) {
	if !s.c.json {
		_, _ = fmt.Fprint(s.p.as("task "+task), clean(piece))
	}
}

func (s *screen) Replace(task, text string) {
	s.Note(client.Note{Kind: "changed", Task: task})
	s.Text(task, text)
}

func (s *screen) Note(n client.Note) {
	if n.Kind == "error" {
		s.trouble[n.Task] = clean(n.Text)
	}
	switch text := noteText(n); {
	case n.Kind == "approval", n.Kind == "approval_over":
		s.approval(n)
	case n.Kind == "output":
		s.line("%s", clean(n.Text))
	case n.Kind == "round":
		s.p.end()
	case text != "":
		s.line("%s", s.c.paint(quiet, "· "+text))
	}
}

func (s *screen) End(t client.Task) {
	s.p.end()
	trouble := s.trouble[t.InputID]
	delete(s.trouble, t.InputID)
	switch {
	case s.c.json:
		b, _ := json.Marshal(t) // strings, numbers and times always encode
		_, _ = fmt.Fprintf(s.p.as("note"), "%s\n", b)
	case t.End == "failed" && trouble != "" && trouble == clean(t.Text):
	case t.End != "answered" && t.End != "":
		s.line("%s", s.c.paint(warn, "· "+endOf(&t)))
	}
	s.mu.Lock()
	s.ended[t.InputID] = true
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// all says whether all tasks have ended and were shown.
func (s *screen) all(tasks []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(tasks, func(id string) bool { return !s.ended[id] })
}

// forAgent says that a line with a slash is for the agent: the offline source runs tools by these words.
func forAgent(text string) bool {
	word, _, _ := strings.Cut(text, " ")
	return word == "/tool" || word == "/tools"
}

// help is what /help says.
const help = `/tools   the tools; without a model, /tool NAME {…} runs one
/stop    stop what runs and what waits
/status  how the node is
/queue   what runs and waits
/allow   let the call run that waits for your word; /allow ID NOTE where several do
/deny    do not let it run; what you say after it is told to the model
/exit    leave; what runs goes on
Ctrl-C   stop; a second time, leave
`

// talk holds a conversation: lines in, answers out as they come.
func (ch *chatCmd) talk(ctx context.Context, cancel context.CancelFunc, c *console, node *client.Client, s *client.Session) error {
	lines, restore, err := openLines(ctx, c)
	if err != nil {
		return err
	}
	defer restore()
	p := &pane{w: lines.out}
	view := *c
	view.out = p.as("talk")
	view.errout = view.out
	to := &screen{c: &view, p: p, ended: make(map[string]bool), trouble: make(map[string]string), wake: make(chan struct{}, 1), asks: new(questions)}
	over := make(chan error, 1)
	go func() {
		_, err := s.Follow(ctx, "", to)
		over <- err
	}()
	t := &talk{ch: ch, c: &view, node: node, s: s, asks: to.asks}
	t.waiting(ctx, to)
	in := lines.in
	// What a file said last deserves its answer; a person leaves on purpose.
	for in != nil || (!lines.person && !to.all(t.sent)) {
		select {
		case err := <-over:
			return err
		case line, ok := <-in:
			if !ok || t.line(ctx, line) {
				in = nil
			}
		case <-to.wake:
		case <-lines.interrupts:
			if t.interrupt(ctx) {
				in, lines.person = nil, true
			}
		}
	}
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// talk is the state of a conversation at the prompt.
type talk struct {
	ch          *chatCmd
	c           *console
	node        *client.Client
	s           *client.Session
	asks        *questions
	sent        []string
	interrupted time.Time
}

// doublePress is how soon a second Ctrl-C must follow to leave.
const doublePress = 3 * time.Second

func (t *talk) interrupt(ctx context.Context) (leave bool) {
	if time.Since(t.interrupted) < doublePress {
		return true
	}
	t.interrupted = time.Now()
	t.say(t.stop(ctx))
	t.c.printf("%s\n", t.c.paint(quiet, "· Ctrl-C again leaves"))
	return false
}

func (t *talk) stop(ctx context.Context) error {
	got, err := t.s.Stop(ctx)
	if err == nil {
		t.c.printf("%s\n", t.c.paint(quiet, "· "+stopText(got)))
	}
	return err
}

// stopText tells what a stop did.
func stopText(s *client.Stopped) string {
	switch {
	case s.Stopped == 0 && s.Quota == 0:
		return "nothing runs or waits"
	case s.Quota == 0:
		return fmt.Sprintf("%d stopped", s.Stopped)
	}
	return fmt.Sprintf("%d stopped, %d more will end without running", s.Stopped, s.Quota)
}

func (t *talk) say(err error) {
	if err != nil && !errors.Is(err, errUnwell) && !errors.Is(err, context.Canceled) {
		t.c.printf("%s\n", t.c.paint(bad, "· "+err.Error()))
	}
}

// line handles one line. Commands are never said to the model, unknown ones neither.
func (t *talk) line(ctx context.Context, line string) (leave bool) {
	text := strings.TrimSpace(line)
	switch word, rest, _ := strings.Cut(text, " "); {
	case text == "":
	case word == "/exit" || word == "/quit":
		return true
	case word == "/stop":
		t.say(t.stop(ctx))
	case word == "/status":
		t.say((&statusCmd{}).Run(t.c, t.node))
	case word == "/queue":
		t.say((&queueCmd{Agent: t.ch.Agent}).Run(t.c, t.node))
	case word == "/allow" || word == "/deny":
		t.say(t.decide(ctx, rest, word == "/allow"))
	case word == "/help":
		t.c.printf("%s", help)
	case strings.HasPrefix(word, "/") && !forAgent(text):
		t.c.printf("%s\n", t.c.paint(bad, "· there is no "+word+"; /help shows the commands"))
	default:
		got, err := t.s.Send(ctx, text, string(t.ch.Mode))
		if err != nil {
			t.say(err)
			return false
		}
		t.sent = append(t.sent, got.InputID)
	}
	return false
}
