package main

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/messages"
)

// slack is how long an action waits for its steps: in an idle node they never come.
const slack = 1500 * time.Millisecond

// act does what is due. People wait until the node is ready; what goes wrong does not.
func (w *world) act() {
	for w.next < len(w.plan.actions) && w.dying == "" {
		a := w.plan.actions[w.next]
		if w.host.Now().Before(w.began.Add(a.at)) {
			w.waited = 0
			return
		}
		if w.waited < a.steps && w.host.Now().Before(w.began.Add(a.at+slack)) {
			return
		}
		if !a.fault() && (!w.up || w.stopping != nil) {
			return
		}
		w.next++
		w.waited, w.acted = 0, w.host.Now()
		w.rec.note("%s", a)
		w.do(a)
	}
}

func (w *world) do(a action) {
	switch a.do {
	case doSubmit:
		in := proto.CloneOf(a.input)
		if a.d > 0 {
			in.DeadlineUs = w.host.Now().Add(a.d).UnixMicro()
		}
		w.submit(in, 0)
	case doStop:
		w.stop(a.name)
	case doKill:
		if path := w.turn(); path != "" {
			w.checks.killed(path)
			w.host.Kill(path)
		}
	case doCreate:
		w.ask("agents/main", &messages.CreateAgent{
			Name: a.name, Task: "work " + a.id, InputId: a.id, PersonWaits: true,
			Spec: &messages.AgentSpec{TaskPrompt: "work", OriginChannel: "chat", OriginConversation: "c1", Principal: &messages.Principal{Id: "owner"}},
		}, func(proto.Message) {})
	case doDestroy:
		w.checks.destroyed("main/resident/" + a.name)
		w.ask("agents/main", &messages.DestroyAgent{Name: a.name, Drop: a.n == 1}, func(proto.Message) {})
	case doEdit:
		w.edit(a)
	case doTimer:
		w.setTimer(a)
	case doConfig:
		w.values[configs.KeySchedulerCooldown] = []string{"0s", "500ms", "4s"}[a.n]
		w.host.Notify("config", kit.Restarted{})
	case doCrash, doPower:
		w.die(a.do)
	case doTorn:
		w.disk.CutIn = a.n
	case doRestart:
		w.beginStop()
	case doFail, doLag, doAgain, doPause:
		w.trouble(a)
	case doLow:
		w.disk.Low = true
		w.after(a.d, func() { w.disk.Low = false })
	case doSync:
		w.disk.FailSync = true
		w.after(10*time.Second, func() {
			if w.disk.Broken() {
				w.die(doPower)
			}
			w.disk.FailSync = false
		})
	case doOutage:
		w.outside.down[a.name] = true
		w.after(a.d, func() { w.openChannel(a.name) })
	}
}

func (w *world) after(d time.Duration, do func()) {
	w.later = append(w.later, later{w.host.Now().Add(d), do})
}

// trouble makes one actor panic or fall behind.
func (w *world) trouble(a action) {
	path := a.path
	if path == "turn" {
		path = w.turn()
	}
	if !w.host.Alive(path) {
		return
	}
	switch a.do {
	case doLag:
		w.host.Lag(path, a.n)
		return
	case doAgain:
		w.host.Restart(path)
		return
	case doPause:
		w.host.Pause(path, true)
		w.after(a.d, func() { w.host.Pause(path, false) })
		return
	default:
	}
	w.checks.failing(path)
	w.host.Fail(path)
}

// turn is the path of some living turn, or empty.
func (w *world) turn() string {
	var turns []string
	for _, p := range w.host.Paths() {
		if strings.Contains(p, "/turn/") {
			turns = append(turns, p)
		}
	}
	if len(turns) == 0 {
		return ""
	}
	return turns[w.rng.IntN(len(turns))]
}

// submit hands an input over as a channel's shell does. With an idempotency key whoever gets no answer tries again.
func (w *world) submit(in *messages.Input, try int) {
	in = proto.CloneOf(in)
	in.CreatedUs = w.host.Now().UnixMicro()
	f := &fate{input: in}
	w.results[in.GetId()] = f
	w.ask("channels", &messages.SubmitInput{Input: in}, func(m proto.Message) {
		switch m := m.(type) {
		case *messages.SubmitResult:
			f.result = m
			w.checks.answered(f)
			return
		case *messages.Error:
			if m.GetCode() == kit.CodeGone {
				f.result = &messages.SubmitResult{InputId: in.GetId(), Error: m}
			}
		}
		if in.GetIdempotencyKey() == "" || try >= 3 || w.healed {
			return
		}
		again := proto.CloneOf(in)
		again.Id = fmt.Sprintf("%sr%d", strings.Split(in.GetId(), "r")[0], try+1)
		w.after(time.Second, func() { w.whenUp(func() { w.submit(again, try+1) }) })
	})
}

// whenUp does something once the node is ready.
func (w *world) whenUp(do func()) {
	if w.up && w.stopping == nil {
		do()
		return
	}
	w.after(time.Second, func() { w.whenUp(do) })
}

func (w *world) stop(conversation string) {
	w.ask("channels", &messages.StopAll{Conversation: conversation, Principal: &messages.Principal{Id: "owner"}}, func(proto.Message) {})
}

// edit changes an input that waits, if it does.
func (w *world) edit(a action) {
	m := &messages.EditQueue{
		InputId: a.id, Edit: messages.QueueEdit(a.n), Text: "text " + a.id + " put in other words", Level: int32(a.steps % 4),
		Principal: &messages.Principal{Id: "owner", Kind: messages.PrincipalKind_PRINCIPAL_KIND_OWNER},
	}
	if m.GetEdit() == messages.QueueEdit_QUEUE_EDIT_CANCEL {
		w.checks.odd[a.id] = "killed"
	}
	w.ask("agents/main/scheduler", m, func(proto.Message) {})
}

// setTimer sets a reminder or a job, once or again and again.
func (w *world) setTimer(a action) {
	put := &messages.PutTimer{Timer: &messages.Timer{
		TimerId: a.id, Text: "it is time " + a.id, Reminder: a.n%2 == 0, Channel: a.name, Zone: "UTC",
		Principal: &messages.Principal{Id: "owner", Kind: messages.PrincipalKind_PRINCIPAL_KIND_OWNER}, Taint: messages.Taint_TAINT_TRUSTED,
		Missed: messages.MissedPolicy(1 + a.n%2), Overlap: messages.OverlapPolicy(1 + a.n/2),
	}}
	if a.n < 2 {
		put.In = a.d.String()
	} else {
		put.Every = a.d.String()
	}
	w.timers = append(w.timers, a.id)
	w.ask("timers", put, func(proto.Message) {})
}

// asked is a person who sees that somebody must decide about a call. Some decide at once, some later, some only when
// everything else is done.
func (w *world) asked(a *messages.Approval) {
	w.outside.asked[a.GetCall().GetCallId()] = true
	if a.GetState() != messages.ApprovalState_APPROVAL_STATE_PENDING {
		return
	}
	rng := chance(w.plan.seed, "decide", a.GetApprovalId())
	wait := time.Duration(rng.IntN(4000)) * time.Millisecond
	switch {
	case w.healed:
		wait = time.Second
	case rng.IntN(6) == 0:
		return
	}
	allow := rng.IntN(3) > 0
	w.after(wait, func() { w.whenUp(func() { w.decide(a, allow) }) })
}

func (w *world) decide(a *messages.Approval, allow bool) {
	if allow {
		w.outside.allowed[a.GetCall().GetCallId()] = true
	}
	w.ask("guard", &messages.DecideApproval{
		ApprovalId: a.GetApprovalId(), Hash: a.GetHash(), Allow: allow,
		Principal: &messages.Principal{Id: "owner", Kind: messages.PrincipalKind_PRINCIPAL_KIND_OWNER},
	}, func(proto.Message) {})
}

// settle decides all that waits and takes the timers away, so that all can come to its end.
func (w *world) settle() {
	for _, id := range w.timers {
		w.ask("timers", &messages.DeleteTimer{Timer: id}, func(proto.Message) {})
	}
	list, _, _ := questions{w.disk}.List(func(a *messages.Approval) bool {
		return a.GetState() == messages.ApprovalState_APPROVAL_STATE_PENDING
	})
	for _, a := range list {
		w.decide(a, true)
	}
}
