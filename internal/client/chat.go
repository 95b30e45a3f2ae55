package client

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"homeagent/messages/api"
)

// Screen is where a conversation is shown. Its methods are called by one goroutine at a time.
type Screen interface {
	// Text appends a piece to the answer of a task.
	Text(task, piece string)
	// Replace shows the whole answer of a task anew, since what was shown of it is not how it begins.
	Replace(task, text string)
	// Note tells what happens to a task besides its text.
	Note(n Note)
	// End tells that a task has ended; its text was shown before, unless it did not end answered.
	End(t Task)
}

// Note is a fact for people about a task.
type Note struct {
	// Kind: suspended, resumed, steered, queued, parked, tool, tool_failed, error, output, gap, approval: a call waits for
	// a person, approval_over: it waits no more, and round: what comes next is a text of its own.
	Kind string
	Task string
	// Text says more: the name of a tool, the message of an error, the text of an output of another task.
	Text string
	// Hint says what to do about an error; it may be empty.
	Hint string
	// Approval is the call, for approval and approval_over.
	Approval *Approval
}

// Session is one conversation with an agent, seen live. Send may be called from any goroutine, Follow from one.
type Session struct {
	c      *Client
	stream *Stream
	o      SessionOptions
	texts  map[string]*api.Text
	// told are tasks whose whole answer was shown.
	told map[string]bool

	mu  sync.Mutex
	own map[string]bool // tasks of this session, whatever conversation their events name
	// sending counts texts whose task is not known yet.
	sending int
}

// SessionOptions say which conversation.
type SessionOptions struct {
	// Channel and Conversation; both must be given.
	Channel, Conversation string
	// Agent path; empty means main.
	Agent string
}

// Session begins to listen to a conversation; nothing of what is sent afterwards is missed.
func (c *Client) Session(ctx context.Context, o SessionOptions) (*Session, error) {
	st, f, err := c.listen(ctx, append([]string{api.EventToolCall, api.EventApproval}, anyonesTypes...))
	var refused *Error
	if errors.As(err, &refused) && refused.Code == api.CodeNotAllowed { // a token does not see the calls
		st, f, err = c.listen(ctx, anyonesTypes)
	}
	if err != nil {
		return nil, err
	}
	if f.Ready == nil {
		st.Close()
		return nil, ErrAnswer
	}
	return &Session{c: c, stream: st, o: o, texts: make(map[string]*api.Text), told: make(map[string]bool), own: make(map[string]bool)}, nil
}

// anyonesTypes are the events of a conversation that everybody sees of their own tasks.
var anyonesTypes = []string{api.EventContentDelta, api.EventTask, api.EventStage, api.EventOutput, api.EventError}

// listen opens a stream and waits for its first frame.
func (c *Client) listen(ctx context.Context, types []string) (*Stream, Frame, error) {
	st, err := c.Events(ctx, StreamOptions{Types: types})
	if err != nil {
		return nil, Frame{}, err
	}
	f, err := st.Next()
	if err != nil {
		st.Close()
	}
	return st, f, err
}

// Send hands over a text. mode may be empty.
func (s *Session) Send(ctx context.Context, text, mode string) (*Submitted, error) {
	s.mu.Lock()
	s.sending++
	s.mu.Unlock()
	got, err := s.c.Submit(ctx, Submit{
		Text: text, Mode: mode, Channel: s.o.Channel, Conversation: s.o.Conversation, Agent: s.o.Agent,
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sending--
	if err != nil {
		return nil, err
	}
	s.own[got.InputID] = true
	return got, nil
}

// Stop stops what runs for this conversation, and what waits.
func (s *Session) Stop(ctx context.Context) (*Stopped, error) {
	return s.c.Stop(ctx, Stop{Agent: s.o.Agent, Conversation: s.o.Conversation})
}

// Close ends the session; tasks go on.
func (s *Session) Close() { s.stream.Close() }

func (s *Session) ours(e *Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own[e.TaskID] || (e.Channel == s.o.Channel && e.Conversation == s.o.Conversation)
}

// Follow shows what happens to the task until until it has ended, and returns how. With an empty until it shows the whole
// conversation and goes on until the context of the session ends, whose error it returns.
func (s *Session) Follow(ctx context.Context, until string, to Screen) (*Task, error) {
	for {
		f, err := s.stream.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = unreachable(s.c.where, err)
			}
			return nil, err
		}
		var done *Task
		switch {
		case f.Event != nil && until != "" && f.Event.TaskID != until:
		case f.Event != nil && s.ours(f.Event):
			done, err = s.show(ctx, f.Event, until, to)
		case f.Sync != nil:
			to.Note(Note{Kind: "gap"})
			fallthrough
		case f.Ready != nil:
			done, err = s.caughtUp(ctx, until, to)
		}
		if done != nil || err != nil {
			return done, err
		}
	}
}

// say shows a piece as it joins what was shown.
func say(to Screen, task, piece string, joint api.Joint) {
	switch {
	case piece == "":
	case joint == api.Replaced:
		to.Replace(task, piece)
	case joint == api.Fresh:
		to.Note(Note{Kind: "round", Task: task})
		to.Text(task, piece)
	default:
		to.Text(task, piece)
	}
}

// text is the text of a task that is being shown.
func (s *Session) text(task string) *api.Text {
	t := s.texts[task]
	if t == nil {
		t = new(api.Text)
		s.texts[task] = t
	}
	return t
}

// show shows one event. It returns the task that was waited for when this is its end.
func (s *Session) show(ctx context.Context, e *Event, until string, to Screen) (*Task, error) {
	switch e.Type {
	case api.EventContentDelta:
		more, joint := s.text(e.TaskID).Add(e.Text)
		say(to, e.TaskID, more, joint)
	case api.EventStage:
		if t := s.texts[e.TaskID]; t != nil && e.Stage != nil && e.Stage.Stage == "post_action" {
			t.Round()
		}
	case api.EventToolCall:
		s.tool(e, to)
	case api.EventApproval:
		s.approval(e, to)
	case api.EventError:
		if e.Error != nil {
			to.Note(Note{Kind: "error", Task: e.TaskID, Text: e.Error.Message, Hint: e.Error.Hint})
		}
	case api.EventOutput:
		s.output(e, to)
	case api.EventTask:
		if e.Task == nil {
			return nil, nil
		}
		if e.Task.Change == "ended" {
			return s.end(ctx, e, until, to)
		}
		if e.Task.Change == "suspended" {
			s.text(e.TaskID).Restart()
		}
		switch e.Task.Change {
		case "suspended", "resumed", "steered", "queued", "parked":
			to.Note(Note{Kind: e.Task.Change, Task: e.TaskID, Text: e.Task.By})
		}
	}
	return nil, nil
}

func (s *Session) tool(e *Event, to Screen) {
	switch {
	case e.Tool == nil:
	case e.Tool.Result == nil:
		to.Note(Note{Kind: "tool", Task: e.TaskID, Text: e.Tool.Name})
	case e.Tool.Result.Error != nil:
		to.Note(Note{Kind: "tool_failed", Task: e.TaskID, Text: e.Tool.Name + ": " + e.Tool.Result.Error.Text()})
	}
}

// output shows a text that no task of this session is streaming: a reminder, a message in mid-turn, a report.
func (s *Session) output(e *Event, to Screen) {
	if _, streaming := s.texts[e.TaskID]; streaming || e.Output == nil {
		return
	}
	s.mu.Lock()
	own := s.own[e.TaskID]
	s.mu.Unlock()
	if own {
		return // its end shows it
	}
	text := ""
	for _, b := range e.Output.Content {
		text += b.Text
	}
	to.Note(Note{Kind: "output", Task: e.TaskID, Text: text})
}

// end shows the end of a task.
func (s *Session) end(ctx context.Context, e *Event, until string, to Screen) (*Task, error) {
	t := Task{
		InputID: e.TaskID, State: "ended", End: e.Task.End, Reason: e.Task.Reason, Text: e.Task.Text, By: e.Task.By,
		Channel: e.Channel, Conversation: e.Conversation, Agent: e.Agent, Ended: e.At, Usage: e.Task.Usage,
	}
	_, streaming := s.texts[e.TaskID]
	if e.TaskID == until || streaming || s.maybeOwn(e.TaskID) {
		if err := s.finish(ctx, &t, to); err != nil {
			return nil, err
		}
	}
	if e.TaskID != until {
		return nil, nil
	}
	return &t, nil
}

// maybeOwn tells whether a task was sent by this session. While a text is on its way its id is not known yet, and its end
// may come before the answer that tells it: then any end of this conversation may be its.
func (s *Session) maybeOwn(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own[id] || s.sending > 0
}

// finish shows what is still missing of an answer. One that joined another task was answered there: its text is shown
// unless that task showed it already.
func (s *Session) finish(ctx context.Context, t *Task, to Screen) error {
	text, streamed := s.texts[t.InputID]
	delete(s.texts, t.InputID)
	s.mu.Lock()
	delete(s.own, t.InputID)
	s.mu.Unlock()
	if !streamed {
		text = new(api.Text)
	}
	if t.End == "answered" {
		s.tell(t.InputID)
		if t.By != "" && t.By != t.InputID {
			if err := s.answeredBy(ctx, t, to); err != nil {
				return err
			}
		} else {
			more, joint := text.Finish(t.Text)
			say(to, t.InputID, more, joint)
		}
	}
	to.End(*t)
	return nil
}

// tell notes that the whole answer of a task was shown. Only the latest matter: a task and those that joined it end
// together.
func (s *Session) tell(task string) {
	if len(s.told) > 1000 {
		clear(s.told)
	}
	s.told[task] = true
}

// answeredBy shows the answer of the task that an input joined.
func (s *Session) answeredBy(ctx context.Context, t *Task, to Screen) error {
	if s.told[t.By] {
		return nil
	}
	other, streaming := s.texts[t.By]
	if t.Text == "" {
		got, err := s.c.Input(ctx, t.By)
		if err != nil {
			return err
		}
		t.Text = got.Text
	}
	if !streaming {
		other = new(api.Text)
		s.texts[t.By] = other
	}
	more, joint := other.Finish(t.Text)
	say(to, t.InputID, more, joint)
	return nil
}

// caughtUp asks for the task that is waited for after a gap or a new connection, or for all that this session has sent:
// their ends may be among what was missed.
func (s *Session) caughtUp(ctx context.Context, until string, to Screen) (*Task, error) {
	for _, t := range s.texts {
		t.Restart() // pieces are live only: what comes next may not join what was shown
	}
	ask, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if until == "" {
		return nil, s.missed(ask, to)
	}
	t, err := s.c.Input(ask, until)
	if err != nil || t.End == "" {
		return nil, nil // the stream tells the end; this was to learn it sooner
	}
	if err := s.finish(ctx, t, to); err != nil {
		return nil, err
	}
	return t, nil
}

// missed shows the ends of tasks of this session that the stream does not tell any more.
func (s *Session) missed(ctx context.Context, to Screen) error {
	s.mu.Lock()
	own := slices.Sorted(maps.Keys(s.own))
	s.mu.Unlock()
	for _, id := range own {
		t, err := s.c.Input(ctx, id)
		if err != nil || t.End == "" {
			continue // the stream tells the end; this was to learn it sooner
		}
		if err := s.finish(ctx, t, to); err != nil {
			return err
		}
	}
	return nil
}
