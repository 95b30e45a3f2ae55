package worker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"homeagent/messages"
	"homeagent/providers"
	"homeagent/providers/lua"
)

// Serve is the other side: it answers questions from in on out until in ends, which
// gives nil. renew is called before each call to a model, to give it its share of
// time; nil for nothing. The error says why it can not go on.
func Serve(in io.Reader, out io.Writer, renew func()) error {
	s := &server{in: bufio.NewReader(in), out: out, renew: renew}
	defer s.close()
	for {
		var q question
		if err := read(s.in, &q); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		rep, err := s.answer(&q)
		if s.broken != nil {
			return s.broken
		}
		if err != nil {
			rep = &reply{Failure: failureOut(err)}
		}
		rep.Op = opDone
		if err := write(out, rep); err != nil {
			return err
		}
	}
}

// server is a worker at work.
type server struct {
	in     *bufio.Reader
	out    io.Writer
	renew  func()
	engine *lua.Engine
	name   string
	ex     providers.Exchange
	// broken is set when the pipe breaks in the middle of an answer.
	broken error
}

func (s *server) close() {
	if s.ex != nil {
		s.ex.Close()
	}
	if s.engine != nil {
		s.engine.Close()
	}
}

func (s *server) answer(q *question) (*reply, error) {
	ctx := context.Background() // the script's own limits bound it, and the node's patience
	switch q.Op {
	case opLoad:
		return s.load(q)
	case opOpen:
		return s.open(ctx, q)
	case opClose:
		if s.ex != nil {
			s.ex.Close()
			s.ex = nil
		}
		return &reply{}, nil
	}
	if s.ex == nil {
		return nil, fmt.Errorf("%w: %q without a call", ErrOrder, q.Op)
	}
	switch q.Op {
	case opPrepare:
		p, err := s.ex.Prepare(ctx)
		return &reply{Prepared: p}, err
	case opEmbed:
		if q.Embed == nil {
			return nil, fmt.Errorf("%w: %q without options", ErrOrder, q.Op)
		}
		p, err := s.ex.PrepareEmbed(ctx, q.Texts, *q.Embed)
		return &reply{Prepared: p}, err
	case opVectors:
		e, err := s.ex.Embeddings(ctx, q.Body)
		return &reply{Embedded: e}, err
	case opClassify:
		if q.Refusal == nil {
			return nil, fmt.Errorf("%w: %q without a refusal", ErrOrder, q.Op)
		}
		f, err := s.ex.Classify(ctx, *q.Refusal)
		return &reply{Fault: f}, err
	case opEvent, opAnswer, opEnd:
		return s.pieces(ctx, q)
	}
	return nil, fmt.Errorf("%w: %q", ErrOrder, q.Op)
}

func (s *server) pieces(ctx context.Context, q *question) (*reply, error) {
	var list []providers.Piece
	var err error
	switch {
	case q.Op == opEnd:
		list, err = s.ex.End(ctx)
	case q.Op == opEvent && q.Event != nil:
		list, err = s.ex.Event(ctx, *q.Event)
	case q.Op == opAnswer && q.None:
		list, err = s.ex.Answer(ctx, nil)
	case q.Op == opAnswer:
		list, err = s.ex.Answer(ctx, q.Body)
	default:
		err = fmt.Errorf("%w: %q without an event", ErrOrder, q.Op)
	}
	if err != nil {
		return nil, err
	}
	out, err := piecesOut(list)
	return &reply{Pieces: out}, err
}

func (s *server) load(q *question) (*reply, error) {
	if s.engine != nil {
		return nil, fmt.Errorf("%w: %q a second time", ErrOrder, q.Op)
	}
	var err error
	if s.engine, err = lua.Given(q.Files, slog.New(&logged{s: s})); err != nil {
		return nil, err
	}
	s.name = q.Name
	a, err := s.engine.Adapter(q.Name)
	if err != nil {
		return nil, err
	}
	info := a.Info()
	return &reply{Info: &info}, nil
}

func (s *server) open(ctx context.Context, q *question) (*reply, error) {
	if s.engine == nil || s.ex != nil || q.Call == nil {
		return nil, fmt.Errorf("%w: %q", ErrOrder, q.Op)
	}
	if s.renew != nil {
		s.renew()
	}
	a, err := s.engine.Adapter(s.name)
	if err != nil {
		return nil, err
	}
	req, err := q.Call.request()
	if err != nil {
		return nil, err
	}
	s.ex, err = a.Open(ctx, q.Call.source(), req, s.fetch)
	return &reply{}, err
}

// fetch has the node make a request.
func (s *server) fetch(_ context.Context, target string, headers map[string]string, body []byte) (*providers.Fetched, error) {
	if s.broken != nil {
		return nil, s.broken
	}
	var q question
	if s.broken = write(s.out, &reply{Op: opFetch, Target: target, Headers: headers, Body: body, None: body == nil}); s.broken != nil {
		return nil, s.broken
	}
	if s.broken = read(s.in, &q); s.broken != nil {
		return nil, s.broken
	}
	switch {
	case q.Op != opFetched:
		s.broken = fmt.Errorf("%w: %q in place of what was fetched", ErrOrder, q.Op)
		return nil, s.broken
	case q.Fetched == nil:
		return nil, &providers.Failure{Kind: messages.ErrorKind_ERROR_KIND_INVALID_REQUEST, Message: q.Error}
	}
	return q.Fetched, nil
}

// logged hands lines of the log to the node.
type logged struct {
	s     *server
	attrs []slog.Attr
}

// Enabled implements slog.Handler.
func (l *logged) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (l *logged) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	add := func(a slog.Attr) bool {
		if a.Key == "text" || a.Key == "error" {
			text = a.Value.String()
		}
		return true
	}
	for _, a := range l.attrs {
		add(a)
	}
	r.Attrs(add)
	return write(l.s.out, &reply{Op: opLog, Level: int(r.Level), Text: text})
}

// WithAttrs implements slog.Handler.
func (l *logged) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logged{s: l.s, attrs: append(l.attrs[:len(l.attrs):len(l.attrs)], attrs...)}
}

// WithGroup implements slog.Handler.
func (l *logged) WithGroup(string) slog.Handler { return l }
