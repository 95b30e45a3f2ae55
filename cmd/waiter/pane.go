package main

import (
	"bytes"
	"io"
	"sync"
)

// pane is an output that several write to, each whole lines of its own: who writes after another has left a line open
// begins a new one.
type pane struct {
	mu   sync.Mutex
	w    io.Writer
	open string // who left the last line open; empty for none
}

// hand is the pane for one who writes; safe for use by several goroutines.
type hand struct {
	p    *pane
	name string
}

// as is the pane for a writer of this name, which is not empty.
func (p *pane) as(name string) hand { return hand{p, name} }

// Write writes b, after ending a line of somebody else.
func (h hand) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	if h.p.open != "" && h.p.open != h.name {
		if _, err := io.WriteString(h.p.w, "\n"); err != nil {
			return 0, err
		}
	}
	h.p.open = ""
	if !bytes.HasSuffix(b, []byte("\n")) {
		h.p.open = h.name
	}
	return h.p.w.Write(b)
}

// end ends a line that is open, whoever's it is.
func (p *pane) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open != "" {
		p.open = ""
		_, _ = io.WriteString(p.w, "\n") // the next write meets the same trouble and tells
	}
}
