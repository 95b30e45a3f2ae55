package api

import "strings"

// Joint says how a piece joins what was shown before.
type Joint int

const (
	// Joined pieces go on where the last one ended.
	Joined Joint = iota
	// Fresh pieces begin a text of their own below what was shown: another round of the turn.
	Fresh
	// Replaced pieces are the whole text in place of what was shown of it, which is void.
	Replaced
)

// Text joins the pieces of one streaming answer for a reader that can only append, such as a terminal or a stream of
// chunks. A model call may be made again after an interrupt and then starts its text anew: as long as the new attempt
// says what was shown already, nothing is shown twice. The zero value is ready. Not safe for concurrent use.
type Text struct {
	shown   string
	attempt strings.Builder
	// split says that the attempt differs from what was shown; nothing more is shown before Finish.
	split bool
	// over says that the round has ended: the next piece is of another one.
	over bool
}

// Restart notes that the attempt under way is void: the next piece begins the same text again.
func (t *Text) Restart() {
	t.attempt.Reset()
	t.split = false
}

// Round notes that a model round has ended. Its text stands, and is the answer unless another round says more.
func (t *Text) Round() { t.over = true }

// Add takes a piece in and returns what to show of it: nothing while it repeats what was shown, or differs from it.
func (t *Text) Add(piece string) (string, Joint) {
	joint := Joined
	if t.over && piece != "" {
		if t.shown != "" {
			joint = Fresh
		}
		*t = Text{}
	}
	t.attempt.WriteString(piece)
	if t.split {
		return "", joint
	}
	now := t.attempt.String()
	switch {
	case strings.HasPrefix(now, t.shown):
		more := now[len(t.shown):]
		t.shown = now
		return more, joint
	case strings.HasPrefix(t.shown, now):
		return "", joint
	}
	t.split = true
	return "", joint
}

// Finish takes the final text and returns what is still to be shown.
func (t *Text) Finish(final string) (string, Joint) {
	shown, over := t.shown, t.over
	*t = Text{shown: final, over: true}
	if rest, ok := strings.CutPrefix(final, shown); ok {
		return rest, Joined
	}
	if over {
		return final, Fresh
	}
	return final, Replaced
}
