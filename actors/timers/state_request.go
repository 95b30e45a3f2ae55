package timers

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/configs"
	engine "homeagent/memory/timers"
	"homeagent/messages"
)

// answer is how a request is answered in the end.
type answer func(*messages.Timer, *messages.Error)

// onRequest takes a request, or keeps it until the timers are read.
func (s *state) onRequest(e kit.Event) {
	if !s.loaded {
		s.early = append(s.early, e)
		return
	}
	plain := func(t *messages.Timer, err *messages.Error) {
		if err != nil {
			s.add(e.Reply(err))
			return
		}
		s.add(e.Reply(s.shown(t)))
	}
	switch m := e.Msg.(type) {
	case *messages.PutTimer:
		s.put(m, plain)
	case *messages.DeleteTimer:
		s.delete(m.GetTimer(), "", plain)
	case *messages.PauseTimer:
		s.pause(m.GetTimer(), "", m.GetPaused(), plain)
	case *messages.RunTimer:
		s.runNow(m, plain)
	case *messages.ListTimers:
		all := &messages.TimerList{}
		for _, t := range s.list(m.GetAgent()) {
			all.Timers = append(all.Timers, s.shown(t))
		}
		s.add(e.Reply(all))
	case *messages.CallTool:
		s.onCall(e, m)
	}
}

// shown is a timer as it is answered: with the zone that its times are read in.
func (s *state) shown(t *messages.Timer) *messages.Timer {
	out := proto.CloneOf(t)
	out.EffectiveZone = s.zoneFor(t).String()
	return out
}

// list is all timers of an agent, or of all agents; the next slot first, those without one last.
func (s *state) list(agent string) []*messages.Timer {
	var out []*messages.Timer
	for _, id := range s.ids() {
		if t := s.timers[id].get(); agent == "" || t.GetAgent() == agent {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b *messages.Timer) int {
		if (a.GetNextUs() == 0) != (b.GetNextUs() == 0) {
			return cmp.Compare(b.GetNextUs(), a.GetNextUs())
		}
		return cmp.Compare(a.GetNextUs(), b.GetNextUs())
	})
	return out
}

// mine tells whether an agent may touch a timer: its own and those of its residents. Nobody in particular may touch all.
func mine(t *timer, agent string) bool {
	of := t.get().GetAgent()
	return agent == "" || of == agent || strings.HasPrefix(of, agent+"/")
}

// find finds a timer by its id, or by a name that only one has.
func (s *state) find(which, agent string) (*timer, *messages.Error) {
	if t := s.timers[which]; t != nil && mine(t, agent) {
		return t, nil
	}
	var found []*timer
	var names []string
	for _, id := range s.ids() {
		t := s.timers[id]
		if !mine(t, agent) {
			continue
		}
		if name := t.get().GetName(); name != "" {
			names = append(names, name)
			if name == which {
				found = append(found, t)
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, &messages.Error{
			Code: "conflict", Message: "Several timers bear this name.", Hint: "Use the id of one of them.", Details: map[string]string{"field": "timer"},
		}
	}
	hint := "List the timers and use the id or the name of one."
	if near := configs.Nearest(which, names, 3); len(near) > 0 {
		hint = "Nearest: " + strings.Join(near, ", ") + ". " + hint
	}
	return nil, &messages.Error{Code: "unknown_timer", Message: "There is no such timer.", Hint: hint, Details: map[string]string{"field": "timer"}}
}

// put sets a timer. Its channel must be there, so that a name that is wrong shows now and not when it is due.
func (s *state) put(m *messages.PutTimer, done answer) {
	t, sch, err := engine.Read(m, s.now, s.p.Zone, engine.Limits{Shortest: s.p.Shortest, Grace: s.p.Grace})
	var no *engine.Error
	switch {
	case errors.As(err, &no):
		done(nil, no.Proto())
		return
	case s.timers[t.GetTimerId()] == nil && int64(len(s.timers)) >= s.p.Max:
		done(nil, &messages.Error{
			Code: "too_many_timers", Message: "There are as many timers as there may be.", Hint: "Remove some, or set " + configs.KeyTimersMax + ".",
		})
		return
	}
	if t.GetChannel() == "" || t.GetChannel() == Channel {
		s.keep(t, sch, done)
		return
	}
	s.ask(s.p.Channels, &messages.ListChannels{}, func(m proto.Message) {
		switch m := m.(type) {
		case *messages.Error:
			done(nil, m)
		case *messages.ChannelList:
			var names []string
			for _, c := range m.GetChannels() {
				names = append(names, c.GetName())
			}
			if slices.Contains(names, t.GetChannel()) {
				s.keep(t, sch, done)
				return
			}
			done(nil, &messages.Error{
				Code: "unknown_channel", Message: "There is no such channel.", Hint: "Known channels: " + strings.Join(names, ", ") + ".",
				Details: map[string]string{"field": "channel", "channel": t.GetChannel()},
			})
		}
	})
}

// keep puts a timer that was read in force and stores it.
func (s *state) keep(m *messages.Timer, sch *engine.Schedule, done answer) {
	id := m.GetTimerId()
	record := &messages.TimerRecord{Timer: m}
	old := s.timers[id]
	m.CreatedUs = cmp.Or(m.GetCreatedUs(), s.now.UnixMicro())
	m.LastUs, m.LastOutcome, m.LastReason, m.LastTask, m.Runs, m.Skipped, m.NextUs, m.EffectiveZone = 0, "", "", "", 0, 0, 0, ""
	if old != nil {
		was := old.get()
		record.PendingUs, record.PendingTask, record.TakenUs = old.record.GetPendingUs(), old.record.GetPendingTask(), old.record.GetTakenUs()
		m.CreatedUs, m.LastUs, m.LastOutcome, m.LastReason = was.GetCreatedUs(), was.GetLastUs(), was.GetLastOutcome(), was.GetLastReason()
		m.LastTask, m.Runs, m.Skipped = was.GetLastTask(), was.GetRuns(), was.GetSkipped()
	}
	if m.GetKind() == messages.TimerKind_TIMER_KIND_ONCE {
		if m.GetAtUs() <= m.GetLastUs() {
			done(nil, &messages.Error{
				Code: engine.CodeBad, Message: "The timer was due then already.", Hint: "Give a later time.", Details: map[string]string{"field": "at"},
			})
			return
		}
		m.NextUs = m.GetAtUs()
	} else {
		m.NextUs = nextAfter(sch, max(s.now.UnixMicro(), m.GetLastUs()))
	}
	t := &timer{}
	if old != nil {
		t = old
	}
	before, planned := t.record, t.schedule
	t.record, t.schedule = record, sch
	s.insert(id, t)
	s.store(record, func(err *messages.Error) {
		if err == nil {
			s.show()
			done(record.GetTimer(), nil)
			return
		}
		if t.record == record { // nothing was built on it
			t.record, t.schedule = before, planned
			if before == nil {
				s.remove(id)
			}
		}
		done(nil, err)
	})
}

// change stores a timer that is there with another record.
func (s *state) change(t *timer, record *messages.TimerRecord, done answer) {
	before := t.record
	t.record = record
	s.store(record, func(err *messages.Error) {
		if err != nil {
			if t.record == record {
				t.record = before
			}
			done(nil, err)
			return
		}
		done(record.GetTimer(), nil)
	})
}

func (s *state) delete(which, agent string, done answer) {
	t, no := s.find(which, agent)
	if no != nil {
		done(nil, no)
		return
	}
	id := t.get().GetTimerId()
	s.remove(id)
	if t.run != nil { // its task, if there is one already, goes on
		s.runs--
	}
	s.write(engine.Delete(id), func(err *messages.Error) {
		if err != nil {
			if s.timers[id] == nil {
				t.run = nil
				s.insert(id, t)
			}
			done(nil, err)
			return
		}
		s.show()
		done(t.get(), nil)
	})
}

// pause holds a timer or lets it go on; what passed while it was held is skipped.
func (s *state) pause(which, agent string, paused bool, done answer) {
	t, no := s.find(which, agent)
	if no != nil {
		done(nil, no)
		return
	}
	if t.get().GetPaused() == paused {
		done(t.get(), nil)
		return
	}
	record := proto.CloneOf(t.record)
	m := record.GetTimer()
	m.Paused = paused
	var slot *messages.TimerSlot
	if next := m.GetNextUs(); !paused && t.run == nil && t.schedule != nil && next != 0 && next <= s.now.UnixMicro() {
		latest, n := t.schedule.Passed(time.UnixMicro(next-1), s.now)
		if n == 0 {
			latest, n = time.UnixMicro(next), 1
		}
		m.LastUs, m.LastOutcome, m.LastReason, record.TakenUs = latest.UnixMicro(), outcomePaused, "paused", s.now.UnixMicro()
		m.Skipped += uint64(n) //nolint:gosec // at most MaxPassed
		m.NextUs = nextAfter(t.schedule, m.GetLastUs())
		slot = &messages.TimerSlot{
			TimerId: m.GetTimerId(), Name: m.GetName(), SlotUs: m.GetLastUs(), Outcome: outcomePaused, Reason: "paused", NextUs: m.GetNextUs(),
			Passed: uint64(n - 1), //nolint:gosec // at most MaxPassed
		}
	}
	s.change(t, record, func(got *messages.Timer, err *messages.Error) {
		if err == nil && slot != nil {
			s.count(slot)
			s.tell(t, slot)
		}
		done(got, err)
	})
}

// runNow makes a task of a timer beside its slots. The same request makes one task.
func (s *state) runNow(m *messages.RunTimer, done answer) {
	t, no := s.find(m.GetTimer(), "")
	switch {
	case no != nil:
		done(nil, no)
		return
	case m.GetRequestId() == "":
		done(nil, &messages.Error{Code: engine.CodeBad, Message: "The request has no id.", Details: map[string]string{"field": "request_id"}})
		return
	}
	id := t.get().GetTimerId()
	key := "timer:" + id + ":run:" + m.GetRequestId()
	in := s.input(t, key, taskID(s.now, key), due{slot: s.now, hand: true})
	s.ask(s.p.Channels, &messages.SubmitInput{Input: in}, func(m proto.Message) {
		switch m := m.(type) {
		case *messages.Error:
			done(nil, m)
		case *messages.SubmitResult:
			if m.GetError() != nil {
				done(nil, m.GetError())
				return
			}
			s.ranByHand(t, m, done)
		}
	})
}

func (s *state) ranByHand(t *timer, m *messages.SubmitResult, done answer) {
	if s.timers[t.get().GetTimerId()] != t || m.GetDuplicate() {
		done(t.get(), nil) // deleted meanwhile, or counted already
		return
	}
	record := proto.CloneOf(t.record)
	record.Timer.LastTask = m.GetInputId()
	record.Timer.Runs++
	slot := &messages.TimerSlot{
		TimerId: t.get().GetTimerId(), Name: t.get().GetName(), SlotUs: s.now.UnixMicro(), Outcome: outcomeRan, Reason: reasonHand,
		TaskId: m.GetInputId(), NextUs: t.get().GetNextUs(),
	}
	s.change(t, record, func(got *messages.Timer, err *messages.Error) {
		if err == nil {
			s.count(slot)
			s.tell(t, slot)
		}
		done(got, err)
	})
}
