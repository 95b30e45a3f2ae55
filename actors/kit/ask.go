package kit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// askPath is the path to which answers for callers outside of the tree go. No actor can have it.
const askPath = "$ask"

// Asker is what code outside of the tree needs to talk to actors; a Runtime is one. Workers may use it, machines never.
type Asker interface {
	Ask(ctx context.Context, to *messages.Address, m proto.Message) (proto.Message, error)
}

// Ask sends a request and waits for its one answer. It waits until ctx ends, or Config.AskTimeout when ctx has no
// deadline. The answers Error and Busy come back as a Refused with their code, like everything else that can go wrong;
// after code timeout or cancelled the request may still be carried out. The answer is frozen.
func (rt *Runtime) Ask(ctx context.Context, to *messages.Address, m proto.Message) (proto.Message, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, rt.cfg.AskTimeout)
		defer cancel()
	}
	c, refusal := rt.find(to)
	if refusal != nil {
		return nil, refuse(refusal)
	}
	corr, answer := rt.asks.open()
	defer rt.asks.close(corr)
	if refusal := c.deliver(rt.asks.self, corr, m); refusal != nil {
		return nil, refuse(refusal)
	}
	select {
	case a := <-answer:
		switch a := a.(type) {
		case *messages.Error:
			return nil, refuse(a)
		case *messages.Busy:
			return nil, refuse(errBusy(c.path(), int(a.GetDepth())))
		}
		return a, nil
	case <-ctx.Done():
		return nil, refuse(noAnswer(ctx, c.path(), m))
	}
}

func noAnswer(ctx context.Context, path string, m proto.Message) *messages.Error {
	name := m.ProtoReflect().Descriptor().Name()
	if errors.Is(ctx.Err(), context.Canceled) {
		return &messages.Error{Code: CodeCancelled, Message: fmt.Sprintf("%s to %q was given up", name, path)}
	}
	return &messages.Error{
		Code: CodeTimeout, Message: fmt.Sprintf("%q did not answer %s in time", path, name),
		Hint: "it may still happen", Details: map[string]string{"path": path},
	}
}

// Expect is Ask for one type of answer; any other answer is an error of code unexpected_answer.
func Expect[T proto.Message](ctx context.Context, rt Asker, to *messages.Address, m proto.Message) (T, error) {
	var none T
	a, err := rt.Ask(ctx, to, m)
	if err != nil {
		return none, err
	}
	t, ok := a.(T)
	if !ok {
		return none, refuse(&messages.Error{
			Code:    "unexpected_answer",
			Message: fmt.Sprintf("%q answered with %s", to.GetPath(), a.ProtoReflect().Descriptor().Name()),
		})
	}
	return t, nil
}

// asks holds the callers from outside of the tree that wait for an answer.
type asks struct {
	mu      sync.Mutex
	waiting map[string]chan proto.Message
	seq     uint64
	prefix  string
	self    *messages.Address
}

func (a *asks) start(rt *Runtime) {
	a.waiting = make(map[string]chan proto.Message)
	// The epoch in the correlation keeps an answer that was on its way at the last boot from completing a request of this.
	a.prefix = strconv.FormatUint(rt.cfg.Epoch, 36) + "."
	a.self = &messages.Address{Node: rt.cfg.Node, Path: askPath, Epoch: rt.cfg.Epoch}
}

// open returns a new correlation and the channel on which its one answer comes.
func (a *asks) open() (string, chan proto.Message) {
	ch := make(chan proto.Message, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seq++
	corr := a.prefix + strconv.FormatUint(a.seq, 36)
	a.waiting[corr] = ch
	return corr, ch
}

func (a *asks) close(corr string) {
	a.mu.Lock()
	delete(a.waiting, corr)
	a.mu.Unlock()
}

// answer hands the first answer over and reports whether anybody waited for it.
func (a *asks) answer(corr string, m proto.Message) bool {
	a.mu.Lock()
	ch := a.waiting[corr]
	delete(a.waiting, corr)
	a.mu.Unlock()
	if ch == nil {
		return false
	}
	ch <- m // has room for one
	return true
}
