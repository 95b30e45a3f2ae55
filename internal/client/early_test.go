package client

import (
	"testing"

	"homeagent/messages/api"
)

// ends notes which tasks a screen was told the end of.
type ends struct{ ids []string }

func (*ends) Text(string, string)    {}
func (*ends) Replace(string, string) {}
func (*ends) Note(Note)              {}
func (e *ends) End(t Task)           { e.ids = append(e.ids, t.InputID) }

// A task may have ended before the answer that tells its id has come: the screen is told all the same.
func TestEndBeforeTheID(t *testing.T) {
	for _, sending := range []int{0, 1} {
		s := &Session{texts: map[string]*api.Text{}, told: map[string]bool{}, own: map[string]bool{}, sending: sending}
		e := &Event{TaskID: "t1", Type: api.EventTask, Task: &api.TaskChange{Change: "ended", End: "failed", Reason: "auth"}}
		to := &ends{}
		if _, err := s.show(t.Context(), e, "", to); err != nil {
			t.Fatal(err)
		}
		if len(to.ids) != sending {
			t.Errorf("with %d texts on their way the screen was told of %v", sending, to.ids)
		}
	}
}
