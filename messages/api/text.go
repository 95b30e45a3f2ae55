package api

import "strings"

// Text joins the pieces of one streaming answer for a reader that can only append, such as a terminal or a stream of
// chunks. A model call may be made again after an interrupt or a failure and then starts its text anew: as long as the
// new attempt says what was shown already, nothing is shown twice. The zero value is ready. Not safe for concurrent
// use.
type Text struct {
	shown   string
	attempt strings.Builder
	// split says that the attempt differs from what was shown; nothing more is shown before Finish.
	split bool
}

// Restart notes that the attempt under way is void: the next piece begins the answer anew.
func (t *Text) Restart() {
	t.attempt.Reset()
	t.split = false
}

// Add takes a piece in and returns what to append to what was shown; empty while it repeats it or differs from it.
func (t *Text) Add(piece string) string {
	t.attempt.WriteString(piece)
	if t.split {
		return ""
	}
	now := t.attempt.String()
	switch {
	case strings.HasPrefix(now, t.shown):
		more := now[len(t.shown):]
		t.shown = now
		return more
	case strings.HasPrefix(t.shown, now):
		return ""
	}
	t.split = true
	return ""
}

// Finish takes the final text and returns what to append. replaced says that what was shown is no beginning of it: more
// is then the whole text, to be shown apart.
func (t *Text) Finish(final string) (more string, replaced bool) {
	defer func() { *t = Text{shown: final} }()
	if rest, ok := strings.CutPrefix(final, t.shown); ok {
		return rest, false
	}
	return final, true
}

// Shown reports whether anything of the answer was shown.
func (t *Text) Shown() bool { return t.shown != "" }

// Next ends a round whose text stands as it was shown; the next piece begins a text of its own.
func (t *Text) Next() { *t = Text{} }
