package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"homeagent/internal/client"
)

// readTime is how long a call must have been on the screen before a bare /allow or /deny counts for it: what was typed
// before it came was about something else.
const readTime = 2 * time.Second

// questions are the calls that were shown in a conversation and wait for a word.
type questions struct {
	mu   sync.Mutex
	list []question
}

type question struct {
	a     client.Approval
	since time.Time
}

// put notes a call that was shown; it reports false for one that was shown before.
func (q *questions) put(a *client.Approval) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, x := range q.list {
		if x.a.ID == a.ID {
			return false
		}
	}
	q.list = append(q.list, question{*a, time.Now()})
	return true
}

// drop forgets a call that waits no more.
func (q *questions) drop(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, x := range q.list {
		if x.a.ID == id {
			q.list = append(q.list[:i:i], q.list[i+1:]...)
			return
		}
	}
}

// pick finds the call that is meant: the one named first in text, or the only one that waits. rest is the note.
func (q *questions) pick(text string) (a *client.Approval, rest string, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	first, after, _ := strings.Cut(strings.TrimSpace(text), " ")
	var ids []string
	for i := range q.list {
		if q.list[i].a.ID == first {
			return &q.list[i].a, strings.TrimSpace(after), nil
		}
		ids = append(ids, q.list[i].a.ID)
	}
	switch {
	case strings.HasPrefix(first, "ap-"):
		return nil, "", fmt.Errorf("%s does not wait in this conversation; waiter approvals shows all", first)
	case len(ids) == 0:
		return nil, "", fmt.Errorf("no call waits for your word in this conversation; waiter approvals shows all")
	case len(ids) > 1:
		return nil, "", fmt.Errorf("several calls wait: name one of %s", strings.Join(ids, ", "))
	case time.Since(q.list[0].since) < readTime:
		return nil, "", fmt.Errorf("this call has only just come; name it if you mean it: %s", ids[0])
	}
	return &q.list[0].a, strings.TrimSpace(text), nil
}

// approval shows a call that waits for a word, or that it waits no more.
func (s *screen) approval(n client.Note) {
	a := n.Approval
	if n.Kind == "approval_over" {
		s.asks.drop(a.ID)
		s.line("%s", s.c.paint(quiet, "· "+visible(a.ID)+" is "+a.State))
		return
	}
	if !s.asks.put(a) || s.c.json {
		return
	}
	view := *s.c
	view.out = s.p.as("note")
	drawApproval(&view, a)
	s.line("%s", s.c.paint(warn, "· this call waits for your word: /allow or /deny"))
}

// decide gives the word for a call that was shown, with the hash that was shown.
func (t *talk) decide(ctx context.Context, text string, allow bool) error {
	a, note, err := t.asks.pick(text)
	if err != nil {
		return err
	}
	_, err = t.node.Decide(ctx, a.ID, a.Hash, allow, note)
	if err == nil {
		t.asks.drop(a.ID)
	}
	return err
}

// waiting shows the calls of the conversation that waited before it was opened. Who may not decide is not told of any.
func (t *talk) waiting(ctx context.Context, to *screen) {
	list, err := t.s.Pending(ctx)
	if err != nil {
		return
	}
	for i := range list {
		to.approval(client.Note{Kind: "approval", Approval: &list[i]})
	}
}
