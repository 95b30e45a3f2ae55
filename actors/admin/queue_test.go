package admin

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
	"homeagent/messages/api"
)

func TestQueue(t *testing.T) {
	w := newWorld(t, options{})
	w.spawn("agents/main/turn/t1", kit.Props{Kind: "turn", New: func() kit.Machine { return phased{} }})
	w.answer("agents/main/scheduler", func(m proto.Message) proto.Message {
		if e, ok := m.(*messages.EditQueue); ok {
			if e.GetInputId() == "begun" {
				return &messages.Error{Code: "not_waiting", Message: "no"}
			}
			return &messages.TaskView{TaskId: e.GetInputId(), Level: e.GetLevel(), Position: 3, Principal: &messages.Principal{Id: "owner"}}
		}
		return &messages.SchedulerState{
			Agent: "main", Running: &messages.TaskView{TaskId: "t1"}, Waiting: 7,
			Parked:   []*messages.TaskView{{TaskId: "p", Approvals: []string{"y"}}},
			Queue:    []*messages.TaskView{{TaskId: "q", Position: 1, Principal: &messages.Principal{Id: "owner"}}},
			Counters: &messages.SchedulerCounters{Preempts: map[string]uint64{"3": 2}, Parked: 1},
		}
	})
	w.answer("ledger", func(m proto.Message) proto.Message {
		q, ok := m.(*messages.TaskQuery)
		if !ok {
			return nil
		}
		st := &messages.TaskStatus{Input: &messages.Input{Id: q.GetInputId(), Principal: &messages.Principal{Id: "owner"}}}
		switch q.GetInputId() {
		case "unknown":
			return &messages.Error{Code: "unknown_input", Message: "no"}
		case "over":
			st.State = messages.TaskState_TASK_STATE_ENDED
		}
		return st
	})
	s := get[api.Scheduler](w, "GET", "/api/v1/scheduler?most=1", "")
	if s.Waiting != 7 || s.Parked[0].Approvals[0] != "y" || s.Queue[0].Position != 1 || s.Queue[0].Principal != "owner" ||
		s.Counters.Preempts["3"] != 2 || s.Counters.Parked != 1 {
		t.Errorf("got %+v", s)
	}
	if s.Running.Phase != "completing" {
		t.Errorf("the turn shows completing, the scheduler %q", s.Running.Phase)
	}
	if q := last[*messages.SchedulerQuery](w); q.GetMost() != 1 {
		t.Errorf("asked %v", q)
	}
	if v := get[api.Work](w, "POST", "/api/v1/scheduler/q/promote", ""); v.TaskID != "q" || v.Position != 3 {
		t.Errorf("got %+v", v)
	}
	if e := last[*messages.EditQueue](w); e.GetEdit() != messages.QueueEdit_QUEUE_EDIT_PROMOTE || e.GetPrincipal().GetId() != "owner" {
		t.Errorf("asked %v", e)
	}
	get[api.Work](w, "POST", "/api/v1/scheduler/q/cancel", "")
	if e := last[*messages.EditQueue](w); e.GetEdit() != messages.QueueEdit_QUEUE_EDIT_CANCEL {
		t.Errorf("asked %v", e)
	}
	if v := get[api.Work](w, "PUT", "/api/v1/scheduler/q", `{"text":"other words","level":3}`); v.Level != 3 {
		t.Errorf("got %+v", v)
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		code               string
	}{
		{"PUT", "/api/v1/scheduler/q", `{}`, 400, "malformed"},
		{"PUT", "/api/v1/scheduler/q", `{"text":"  "}`, 400, "malformed"},
		{"PUT", "/api/v1/scheduler/q", `{"level":"3"}`, 400, "malformed"},
		{"PUT", "/api/v1/scheduler/q", `{"level":3.0}`, 400, "malformed"},
		{"PUT", "/api/v1/scheduler/q", `{"level":-0}`, 400, "malformed"},
		{"PUT", "/api/v1/scheduler/q", `{"level":9}`, 400, "malformed"},
		{"PUT", "/api/v1/scheduler/q", `{"level":4}`, 403, "level_not_allowed"},
		{"PUT", "/api/v1/scheduler/begun", `{"level":1}`, 409, "not_waiting"},
		{"POST", "/api/v1/scheduler/over/promote", ``, 409, "not_waiting"},
		{"POST", "/api/v1/scheduler/unknown/cancel", ``, 404, "unknown_input"},
		{"GET", "/api/v1/scheduler?agent=nope", ``, 404, "unknown_agent"},
		{"GET", "/api/v1/scheduler?agent=NO%20PE", ``, 400, "bad_agent"},
		{"GET", "/api/v1/scheduler?most=0", ``, 400, "malformed"},
		{"POST", "/api/v1/inputs", `{"text":"x","deadline":"0001-01-01T00:00:00Z"}`, 400, "bad_deadline"},
		{"POST", "/api/v1/inputs", `{"text":"x","level":"L2"}`, 400, "malformed"},
	} {
		res, b := w.do(c.method, c.path, c.body)
		w.fails(res, b, c.status, c.code)
	}
}

// phased is a turn of which only its phase is known.
type phased struct{}

func (phased) Step(time.Time, kit.Event) []kit.Effect {
	return []kit.Effect{kit.State{Word: "completing"}}
}

func TestStopGoesByChannels(t *testing.T) {
	w := newWorld(t, options{})
	w.answer("channels", func(m proto.Message) proto.Message { return &messages.StopResult{Stopped: 1, Quota: 4} })
	if got := get[api.Stopped](w, "POST", "/api/v1/stop", `{"conversation":"c"}`); got.Stopped != 1 || got.Quota != 4 {
		t.Errorf("got %+v", got)
	}
	if m := last[*messages.StopAll](w); m.GetAgent() != "main" || m.GetConversation() != "c" {
		t.Errorf("asked %v", m)
	}
}
