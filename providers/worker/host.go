package worker

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"homeagent/messages"
	"homeagent/providers"
	"homeagent/providers/framing"
	"homeagent/providers/lua"
)

// Process is a worker that runs. Its pipes break when it ends.
type Process interface {
	io.Reader
	io.Writer
	// Kill ends it at once; it may be called from any goroutine, and more than once.
	Kill()
	// Wait returns when it has ended, with what is known of why; it is called once.
	Wait() string
	// Close frees the pipes; after Wait.
	Close()
}

// Start starts a worker.
type Start func() (Process, error)

const (
	// patience is how long a worker may take for one question: more than the limit
	// that scripts have themselves, so that their own error comes first.
	patience = 15 * time.Second
	// most workers of one adapter at a time.
	most = 8
	// turns is how many calls a worker serves before another takes its place.
	turns = 100
	// rest is how long an idle worker is kept.
	rest = time.Minute
	// maxLines bounds the lines that a worker may log in one answer.
	maxLines = 1000
)

// Adapter runs one adapter in workers. Safe for concurrent use.
type Adapter struct {
	start    Start
	name     string
	files    map[string][]byte
	log      *slog.Logger
	info     providers.Info
	patience time.Duration
	slots    chan struct{}

	mu     sync.Mutex
	idle   *peer
	timer  *time.Timer
	closed bool
	all    sync.WaitGroup
}

// New starts a worker for the adapter of that name among files, and asks what it is.
// file is the adapter's path, for people. A broken script is an error with its file and
// line, as is a worker that can not be started. A nil log drops what scripts say.
func New(start Start, name, file string, files map[string][]byte, log *slog.Logger) (*Adapter, error) {
	return newAdapter(start, name, file, files, log, patience)
}

func newAdapter(start Start, name, file string, files map[string][]byte, log *slog.Logger, patience time.Duration) (*Adapter, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	a := &Adapter{start: start, name: name, files: files, log: log, patience: patience, slots: make(chan struct{}, most)}
	p, err := a.spawn(context.Background())
	if err != nil {
		a.Close()
		return nil, err
	}
	a.info = *p.info
	a.info.Name, a.info.File = name, file
	a.put(p)
	return a, nil
}

// Info implements providers.Adapter.
func (a *Adapter) Info() providers.Info { return a.info }

// Close implements lua.Apart.
func (a *Adapter) Close() {
	a.mu.Lock()
	p := a.idle
	a.idle, a.closed = nil, true
	if a.timer != nil {
		a.timer.Stop()
	}
	a.mu.Unlock()
	if p != nil {
		p.end()
	}
}

// Wait returns when all workers have ended; after Close, and after the calls.
func (a *Adapter) Wait() { a.all.Wait() }

// spawn starts a worker and has it load the files.
func (a *Adapter) spawn(ctx context.Context) (*peer, error) {
	proc, err := a.start()
	if err != nil {
		return nil, a.broken("its process can not be started: %v", err)
	}
	p := &peer{a: a, proc: proc, in: bufio.NewReader(proc), over: make(chan struct{})}
	a.all.Go(func() {
		p.why = proc.Wait()
		close(p.over)
	})
	rep, err := p.ask(ctx, nil, &question{Op: opLoad, Name: a.name, Files: a.files})
	if err == nil && rep.Info == nil {
		err = a.broken("its process says nothing of it")
	}
	if err != nil {
		p.end()
		return nil, err
	}
	p.info = rep.Info
	return p, nil
}

// take gives a worker to a call.
func (a *Adapter) take(ctx context.Context) (*peer, error) {
	select {
	case a.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	a.mu.Lock()
	p, closed := a.idle, a.closed
	a.idle = nil
	a.mu.Unlock()
	if closed {
		<-a.slots
		return nil, a.broken("%v", ErrClosed)
	}
	if p != nil {
		return p, nil
	}
	p, err := a.spawn(ctx)
	if err != nil {
		<-a.slots
	}
	return p, err
}

// give takes a worker back from a call.
func (a *Adapter) give(p *peer) {
	<-a.slots
	a.put(p)
}

func (a *Adapter) put(p *peer) {
	if p.broken || p.served >= turns {
		p.end()
		return
	}
	a.mu.Lock()
	if a.closed || a.idle != nil {
		a.mu.Unlock()
		p.end()
		return
	}
	a.idle = p
	if a.timer == nil {
		a.timer = time.AfterFunc(rest, a.tire)
	} else {
		a.timer.Reset(rest)
	}
	a.mu.Unlock()
}

// tire ends the idle worker.
func (a *Adapter) tire() {
	a.mu.Lock()
	p := a.idle
	a.idle = nil
	a.mu.Unlock()
	if p != nil {
		p.end()
	}
}

// broken is the failure of a call whose worker did not do its part.
func (a *Adapter) broken(format string, args ...any) error {
	return &providers.Failure{
		Kind:    messages.ErrorKind_ERROR_KIND_ADAPTER,
		Message: fmt.Sprintf("the adapter %s is broken: %s", a.name, fmt.Sprintf(format, args...)),
		Hint:    providers.Hint(messages.ErrorKind_ERROR_KIND_ADAPTER),
	}
}

// peer is one worker.
type peer struct {
	a      *Adapter
	proc   Process
	in     *bufio.Reader
	info   *providers.Info
	served int
	broken bool
	// over is closed when the process has ended; why is set then.
	over    chan struct{}
	why     string
	closing sync.Once
}

// end kills the worker and waits for it.
func (p *peer) end() {
	p.broken = true
	p.proc.Kill()
	<-p.over
	p.closing.Do(p.proc.Close)
}

// ask puts a question and handles what the worker wants before it answers. A worker that fails is broken, and killed.
func (p *peer) ask(ctx context.Context, fetch providers.Fetch, q *question) (*reply, error) {
	if p.broken {
		return nil, p.a.broken("its process has ended")
	}
	stop := context.AfterFunc(ctx, p.proc.Kill)
	defer stop()
	late := time.AfterFunc(p.a.patience, p.proc.Kill)
	begun := time.Now()
	rep, waited, err := p.talk(ctx, fetch, late, q)
	late.Stop()
	if err == nil {
		if rep.Failure != nil {
			return nil, rep.Failure.failure()
		}
		return rep, nil
	}
	p.end()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case time.Since(begun)-waited >= p.a.patience:
		return nil, p.a.broken("its process did not answer in %v", p.a.patience)
	}
	return nil, p.a.broken("its process ended in the middle of a call (%s): %v", p.why, err)
}

// talk gives the answer, and how long the worker waited for what it asked for itself.
func (p *peer) talk(ctx context.Context, fetch providers.Fetch, late *time.Timer, q *question) (*reply, time.Duration, error) {
	if err := write(p.proc, q); err != nil {
		return nil, 0, err
	}
	var waited time.Duration
	for lines := 0; ; {
		var rep reply
		if err := read(p.in, &rep); err != nil {
			return nil, waited, err
		}
		switch rep.Op {
		case opDone:
			return &rep, waited, nil
		case opLog:
			if lines++; lines > maxLines {
				return nil, waited, fmt.Errorf("%w: more than %d lines for the log", ErrFrame, maxLines)
			}
			p.a.log.Log(ctx, slog.Level(rep.Level), "adapter says", "adapter", p.a.name, "text", rep.Text)
		case opFetch:
			late.Stop()
			begun := time.Now()
			err := write(p.proc, fetched(ctx, fetch, &rep))
			waited += time.Since(begun)
			if err != nil {
				return nil, waited, err
			}
			late.Reset(p.a.patience)
		default:
			return nil, waited, fmt.Errorf("%w: an answer of the kind %.40q", ErrFrame, rep.Op)
		}
	}
}

func fetched(ctx context.Context, fetch providers.Fetch, rep *reply) *question {
	if fetch == nil {
		return &question{Op: opFetched, Error: "http works only inside of a call to a source"}
	}
	body := rep.Body
	if body == nil && !rep.None {
		body = []byte{}
	}
	got, err := fetch(ctx, rep.Target, rep.Headers, body)
	if err != nil {
		return &question{Op: opFetched, Error: err.Error()}
	}
	return &question{Op: opFetched, Fetched: got}
}

// Open implements providers.Adapter.
func (a *Adapter) Open(ctx context.Context, src *providers.Source, req *providers.Request, fetch providers.Fetch) (providers.Exchange, error) {
	c, err := callOf(src, req)
	if err != nil {
		return nil, err
	}
	p, err := a.take(ctx)
	if err != nil {
		return nil, err
	}
	p.served++
	if _, err := p.ask(ctx, fetch, &question{Op: opOpen, Call: c}); err != nil {
		// What the worker keeps of the call is not known.
		p.end()
		a.give(p)
		return nil, err
	}
	return &exchange{p: p, src: src, fetch: fetch}, nil
}

// exchange is one call to a model, by way of its worker.
type exchange struct {
	p     *peer
	src   *providers.Source
	fetch providers.Fetch
}

// Close implements providers.Exchange.
func (x *exchange) Close() {
	if !x.p.broken {
		// An error has broken the worker.
		_, _ = x.p.ask(context.Background(), nil, &question{Op: opClose})
	}
	x.p.a.give(x.p)
}

func (x *exchange) prepared(ctx context.Context, q *question) (*providers.Prepared, error) {
	rep, err := x.p.ask(ctx, x.fetch, q)
	switch {
	case err != nil:
		return nil, err
	case rep.Prepared == nil:
		return nil, x.p.a.broken("its process made no request")
	}
	if x.src.BaseURL != "" {
		rep.Prepared.Base = x.src.BaseURL // where it goes is not the worker's to say
	}
	return rep.Prepared, nil
}

// Prepare implements providers.Exchange.
func (x *exchange) Prepare(ctx context.Context) (*providers.Prepared, error) {
	return x.prepared(ctx, &question{Op: opPrepare})
}

// PrepareEmbed implements providers.Exchange.
func (x *exchange) PrepareEmbed(ctx context.Context, texts []string, o providers.EmbedOptions) (*providers.Prepared, error) {
	return x.prepared(ctx, &question{Op: opEmbed, Texts: texts, Embed: &o})
}

// Embeddings implements providers.Exchange.
func (x *exchange) Embeddings(ctx context.Context, body []byte) (*providers.Embedded, error) {
	rep, err := x.p.ask(ctx, x.fetch, &question{Op: opVectors, Body: body})
	if err == nil && rep.Embedded == nil {
		err = x.p.a.broken("its process gave no vectors")
	}
	if err != nil {
		return nil, err
	}
	return rep.Embedded, nil
}

func (x *exchange) pieces(ctx context.Context, q *question) ([]providers.Piece, error) {
	rep, err := x.p.ask(ctx, x.fetch, q)
	if err != nil {
		return nil, err
	}
	out, err := piecesIn(rep.Pieces)
	if err != nil {
		return nil, x.p.a.broken("its process gave no pieces of an answer: %v", err)
	}
	return out, nil
}

// Event implements providers.Exchange.
func (x *exchange) Event(ctx context.Context, ev framing.Event) ([]providers.Piece, error) {
	return x.pieces(ctx, &question{Op: opEvent, Event: &ev})
}

// Answer implements providers.Exchange.
func (x *exchange) Answer(ctx context.Context, body []byte) ([]providers.Piece, error) {
	return x.pieces(ctx, &question{Op: opAnswer, Body: body, None: body == nil})
}

// End implements providers.Exchange.
func (x *exchange) End(ctx context.Context) ([]providers.Piece, error) {
	return x.pieces(ctx, &question{Op: opEnd})
}

// Classify implements providers.Exchange.
func (x *exchange) Classify(ctx context.Context, e providers.HTTPError) (*providers.Fault, error) {
	rep, err := x.p.ask(ctx, x.fetch, &question{Op: opClassify, Refusal: &e})
	if err != nil {
		return nil, err
	}
	return rep.Fault, nil
}

var (
	_ lua.Apart          = (*Adapter)(nil)
	_ providers.Exchange = (*exchange)(nil)
)
