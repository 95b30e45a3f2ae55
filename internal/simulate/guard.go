package main

import (
	"slices"
	"strings"
	"time"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/messages"
)

// guard watches one scheduler: what runs, what is suspended, what waits.
type guard struct {
	c    *checks
	path string

	inputs map[string]*messages.Input // as they were offered
	view   *messages.SchedulerState
	// live is the generation of the running turn once it stands; asked that a preemption or an end of it is under way.
	live  bool
	asked bool
	// cut is when each task was last suspended.
	cut map[string]time.Time
	// since is when a waiting task was first seen that may take the place of the running one.
	since    time.Time
	who      string
	cooldown time.Duration   // as the scheduler was told last
	stopped  map[string]bool // waited when everything was stopped
}

const (
	// maxDepth bounds the suspend stack: one task of each level, and one that ran when the node ended.
	maxDepth = 5
	// patience is how long beyond the cooldown a higher task may wait for a decision.
	patience = 1500 * time.Millisecond
)

func newGuard(c *checks, path string) *guard {
	return &guard{c: c, path: path, inputs: map[string]*messages.Input{}, cut: map[string]time.Time{}, stopped: map[string]bool{}, cooldown: 2 * time.Second}
}

func (g *guard) bad(invariant, format string, args ...any) {
	g.c.w.violate(invariant, g.path+": "+format, args...)
}

// stepped compares the scheduler's state with the one before.
func (g *guard) stepped(m kit.Machine, e kit.Event, effects []kit.Effect) {
	s, ok := m.(kit.Shower)
	if !ok {
		return
	}
	before := g.view
	g.view, _ = s.Show().(*messages.SchedulerState)
	g.learn(e)
	if before == nil {
		before = &messages.SchedulerState{}
	}
	if before.GetRunning().GetTaskId() != g.view.GetRunning().GetTaskId() {
		g.live, g.asked, g.since = false, false, time.Time{}
	}
	suspended := g.view.GetCounters().GetSuspended() > before.GetCounters().GetSuspended()
	if id := before.GetRunning().GetTaskId(); id != "" && (suspended || slices.Contains(ids(g.view.GetStack()), id)) {
		g.cut[id] = g.c.now() // suspended, perhaps to go on in the same step, or lost while another was to take its place
	}
	g.look(e, effects, before)
	g.places()
	g.lifo(before)
	if st, ok := e.Msg.(*messages.StopAll); ok {
		g.onStop(before, st)
	}
	g.waits()
	if o, ok := e.Msg.(*messages.Offer); ok && g.who == o.GetInput().GetId() && g.since.Equal(g.c.now()) {
		g.bad("levels", "%s was offered, may take the place of %s, and does not", g.who, g.view.GetRunning().GetTaskId())
	}
	if g.view.GetCounters().GetAnomalies() > 0 {
		g.bad("lifo", "the suspend stack was deeper than its bound: %d", g.view.GetCounters().GetMaxDepth())
	}
}

// learn takes what is known of inputs from what the scheduler is told.
func (g *guard) learn(e kit.Event) {
	switch m := e.Msg.(type) {
	case *messages.Offer:
		g.inputs[m.GetInput().GetId()] = m.GetInput()
	case *messages.PendingTasks:
		for _, t := range m.GetTasks() {
			g.inputs[t.GetInput().GetId()] = t.GetInput()
		}
	case *messages.ConfigChanged:
		for _, v := range m.GetValues() {
			if d, err := configs.ParseDuration(v.GetValue()); err == nil && v.GetKey() == configs.KeySchedulerCooldown {
				g.cooldown = d
			}
		}
	}
}

// look follows the running turn by the messages between it and the scheduler.
func (g *guard) look(e kit.Event, effects []kit.Effect, before *messages.SchedulerState) {
	running := g.view.GetRunning().GetTaskId()
	switch m := e.Msg.(type) {
	case *messages.TurnSpawned:
		if m.GetTaskId() == running && m.GetError() == nil {
			g.live = true
		}
	case *messages.TurnLost:
		if m.GetTaskId() == running {
			g.live = false
		}
	}
	for _, f := range effects {
		s, ok := f.(kit.Send)
		if !ok {
			continue
		}
		switch m := s.Msg.(type) {
		case *messages.Resume:
			g.live, g.asked = true, false
		case *messages.Cancel:
			if strings.HasSuffix(s.To.GetPath(), "/"+running) {
				g.asked = true
			}
		case *messages.Preempt:
			g.preempted(m, before)
			g.asked = true
		}
	}
}

// preempted checks that a task may take the place of the running one.
func (g *guard) preempted(m *messages.Preempt, before *messages.SchedulerState) {
	victim, by := g.view.GetRunning(), g.inputs[m.GetByInput()]
	if victim == nil || by == nil {
		return
	}
	level := by.GetLevel()
	preempted := int32(0)
	for _, t := range slices.Concat(before.GetQueue(), g.view.GetQueue()) {
		if t.GetTaskId() == m.GetByInput() {
			level, preempted = t.GetLevel(), t.GetPreempted()
		}
	}
	if ok, why := g.may(by, level, preempted, victim); !ok {
		g.bad("levels", "%s at level %d preempts %s at level %d (preempted %d times): %s", by.GetId(), level, victim.GetTaskId(), victim.GetLevel(), victim.GetPreempted(), why)
	}
}

func aged(level, preempted int32, personWaits bool) int32 {
	limit := int32(1)
	if personWaits {
		limit = 3
	}
	return max(level, min(limit, level+min(preempted, 2)))
}

// may is the rule of preemption.
func (g *guard) may(by *messages.Input, level, preempted int32, victim *messages.TaskView) (bool, string) {
	v := g.inputs[victim.GetTaskId()]
	defence := aged(victim.GetLevel(), victim.GetPreempted(), v.GetPersonWaits())
	if by.GetMode() == messages.Mode_MODE_INTERRUPT && by.GetPrincipal().GetId() == v.GetPrincipal().GetId() {
		defence = victim.GetLevel()
	}
	if aged(level, preempted, by.GetPersonWaits()) <= defence {
		return false, "not strictly greater"
	}
	cut, was := g.cut[victim.GetTaskId()]
	if !was || level == 4 || by.GetPersonWaits() && !v.GetPersonWaits() || g.c.now().Sub(cut) >= g.cooldown {
		return true, ""
	}
	return false, "cooldown"
}

// places wants each task to be at one place only, and the places to be bounded.
func (g *guard) places() {
	seen := map[string]bool{}
	all := slices.Concat([]*messages.TaskView{}, g.view.GetStack(), g.view.GetQueue(), g.view.GetParked())
	if g.view.GetRunning() != nil {
		all = append(all, g.view.GetRunning())
	}
	for _, t := range all {
		if seen[t.GetTaskId()] {
			g.bad("places", "%s is at two places", t.GetTaskId())
		}
		seen[t.GetTaskId()] = true
	}
	if n := len(g.view.GetStack()); n > maxDepth {
		g.bad("bounds", "%d tasks are suspended", n)
	}
	if n := len(all); n > queueLimit {
		g.bad("bounds", "%d tasks are known, %d may be open", n, queueLimit)
	}
	if r := g.view.GetRunning().GetTaskId(); g.stopped[r] {
		g.bad("stop", "%s waited when everything was stopped, and runs", r)
	}
}

// lifo wants what leaves the stack to run to be on top of it.
func (g *guard) lifo(before *messages.SchedulerState) {
	now := ids(g.view.GetStack()) // top first
	old := ids(before.GetStack())
	running := g.view.GetRunning().GetTaskId()
	if running != before.GetRunning().GetTaskId() {
		if i := slices.Index(old, running); i > 0 {
			for _, above := range old[:i] {
				if slices.Contains(now, above) {
					g.bad("lifo", "%s runs while %s was suspended after it", running, above)
				}
			}
		}
	}
	kept := slices.DeleteFunc(slices.Clone(old), func(id string) bool { return !slices.Contains(now, id) })
	rest := slices.DeleteFunc(slices.Clone(now), func(id string) bool { return !slices.Contains(old, id) })
	if !slices.Equal(kept, rest) && before.GetAgent() != "" {
		g.bad("lifo", "the stack was %v and is %v", old, now)
	}
	if len(old) > 0 && before.GetAgent() != "" && len(now) > len(rest) && slices.Index(now, rest0(rest)) >= 0 && slices.Index(now, rest0(rest)) < len(now)-len(rest) {
		g.bad("lifo", "the stack was %v and is %v", old, now)
	}
}

func rest0(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func ids(list []*messages.TaskView) []string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = t.GetTaskId()
	}
	return out
}

func (g *guard) onStop(before *messages.SchedulerState, m *messages.StopAll) {
	g.c.stopped = true
	for _, t := range before.GetQueue() {
		if m.GetConversation() == "" || m.GetConversation() == t.GetConversation() {
			g.stopped[t.GetTaskId()] = true
		}
	}
}

// waits notes when a higher task waits for the place of the running one.
func (g *guard) waits() {
	if !g.live || g.asked || g.view.GetRunning() == nil {
		g.since = time.Time{}
		return
	}
	for _, t := range g.view.GetQueue() {
		by := g.inputs[t.GetTaskId()]
		if by == nil || t.GetLevel() == 0 {
			continue
		}
		if ok, _ := g.may(by, t.GetLevel(), t.GetPreempted(), g.view.GetRunning()); ok {
			if g.since.IsZero() || g.who != t.GetTaskId() {
				g.since, g.who = g.c.now(), t.GetTaskId()
			}
			return
		}
	}
	g.since = time.Time{}
}

// overdue tells when it has waited too long.
func (g *guard) overdue() {
	if g.since.IsZero() || g.c.now().Sub(g.since) <= patience {
		return
	}
	if g.c.w.host.Machine(g.path) == nil || g.c.w.host.Depth(g.path) > 0 {
		return
	}
	g.bad("levels", "%s has waited since %s for the place of %s", g.who, g.since.Sub(start), g.view.GetRunning().GetTaskId())
}
