package luavm

import (
	"context"
	"sync"
)

// Pool hands out states of one program. Idle states are kept up to a number;
// above it they are made on demand and dropped on return. Safe for concurrent
// use.
type Pool struct {
	prog *Program
	opt  Options
	keep int

	mu     sync.Mutex
	idle   []*State
	closed bool
}

// NewPool makes a pool that keeps at most keep idle states (an idle state with
// a small script holds about 100 KiB).
func NewPool(p *Program, o Options, keep int) *Pool {
	return &Pool{prog: p, opt: o, keep: keep}
}

// Program gives the program of the pool.
func (p *Pool) Program() *Program { return p.prog }

// Get gives a state to its caller alone; give it back with Put. The error is
// that of New, or ErrClosed.
func (p *Pool) Get(ctx context.Context) (*State, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	if n := len(p.idle); n > 0 {
		s := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return s, nil
	}
	p.mu.Unlock()
	return New(ctx, p.prog, p.opt)
}

// Put takes a state back. Broken states and those above the number to keep are
// closed. The caller must not use the state or its values afterwards.
func (p *Pool) Put(s *State) {
	if !s.broken {
		p.mu.Lock()
		if !p.closed && len(p.idle) < p.keep {
			p.idle = append(p.idle, s)
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
	}
	s.Close()
}

// Close drops the idle states; states that are out are closed when they come
// back. It may be called more than once.
func (p *Pool) Close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, s := range idle {
		s.Close()
	}
}
