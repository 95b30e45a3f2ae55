package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/configs"
	"homeagent/messages"
)

// verb is what an action does.
type verb string

const (
	doSubmit  verb = "submit"
	doStop    verb = "stop"
	doKill    verb = "kill-turn"
	doCreate  verb = "create-resident"
	doDestroy verb = "destroy-resident"
	doConfig  verb = "config"
	doEdit    verb = "edit-queue"
	doTimer   verb = "set-timer"
	doCrash   verb = "crash"       // the process is killed
	doPower   verb = "power-cut"   // and what was not synced may be lost
	doTorn    verb = "torn-write"  // the power goes while transactions are being written
	doRestart verb = "restart"     // the node is stopped in order and started again
	doFail    verb = "fail"        // one actor panics
	doLag     verb = "lag"         // one actor falls behind
	doLow     verb = "disk-low"    // no room for a while
	doSync    verb = "failed-sync" // a sync fails; somebody starts the node again
	doOutage  verb = "outage"      // a channel takes nothing for a while
	doAgain   verb = "restart-actor"
	doPause   verb = "pause" // a person holds an actor for a while
)

// action is something that a person does, or that goes wrong, at a moment.
type action struct {
	at    time.Duration // since the start
	steps int           // further steps of actors before it happens, so that it meets them at work
	do    verb
	id    string
	input *messages.Input
	path  string
	name  string
	n     int
	d     time.Duration
}

func (a action) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%8s +%-3d %s", a.at, a.steps, a.do)
	if in := a.input; in != nil {
		level := "-"
		if in.Level != nil {
			level = fmt.Sprint(in.GetLevel())
		}
		fmt.Fprintf(&b, " %s by %s on %s/%s level %s %s key %q agent %s %q", in.GetId(), in.GetPrincipal().GetId(), in.GetChannel(),
			in.GetConversation(), level, strings.ToLower(strings.TrimPrefix(in.GetMode().String(), "MODE_")), in.GetIdempotencyKey(),
			in.GetAgent(), in.GetParts()[0].GetText())
		if in.GetSource() != messages.InputSource_INPUT_SOURCE_PERSON {
			b.WriteString(" " + in.GetSource().String())
		}
	}
	for _, s := range []string{a.path, a.name} {
		if s != "" {
			b.WriteString(" " + s)
		}
	}
	if a.n != 0 {
		fmt.Fprintf(&b, " %d", a.n)
	}
	if a.d != 0 {
		fmt.Fprintf(&b, " for %s", a.d)
	}
	return b.String()
}

// fault tells whether an action is something that goes wrong, as opposed to something that people do.
func (a action) fault() bool {
	switch a.do {
	case doSubmit, doStop, doKill, doCreate, doDestroy, doConfig, doEdit, doTimer:
		return false
	default:
		return true
	}
}

// plan is all that happens to a node in one run.
type plan struct {
	seed    uint64
	actions []action
	rounds  int32 // most rounds of a turn
	// rules are what guard says, by principal and class; what is not named is allowed.
	rules map[string]string
}

// makePlan makes the plan of a seed.
func makePlan(seed uint64) plan {
	rng := rand.New(rand.NewPCG(seed, 0x706c616e))
	p := plan{seed: seed, rounds: []int32{25, 25, 25, 3, 1}[rng.IntN(5)]}
	inputs := 2 + rng.IntN(9)
	span := time.Duration(1+rng.IntN(12)) * time.Second
	if rng.IntN(6) == 0 {
		span *= 5
	}
	when := func() time.Duration { return time.Duration(rng.Int64N(int64(span))).Round(time.Millisecond) }
	for i := range inputs {
		p.actions = append(p.actions, p.submit(rng, i, when()))
	}
	if rng.IntN(3) == 0 {
		for range 1 + rng.IntN(2) {
			p.actions = append(p.actions, action{at: when(), steps: rng.IntN(20), do: doStop, name: pick(rng, "", "", "c1")})
		}
	}
	if rng.IntN(8) == 0 {
		p.actions = append(p.actions, action{at: when(), steps: rng.IntN(40), do: doKill})
	}
	if rng.IntN(5) == 0 {
		p.residents(rng, when)
	}
	if rng.IntN(6) == 0 {
		p.actions = append(p.actions, action{at: when(), do: doConfig, n: rng.IntN(3)})
	}
	if rng.IntN(3) == 0 {
		for range 1 + rng.IntN(3) {
			p.actions = append(p.actions, action{at: when(), steps: rng.IntN(30), do: doEdit, n: 1 + rng.IntN(4), id: fmt.Sprintf("I%02d", rng.IntN(inputs))})
		}
	}
	if rng.IntN(6) == 0 {
		for i := range 1 + rng.IntN(2) {
			p.actions = append(p.actions, action{
				at: when(), do: doTimer, id: fmt.Sprintf("T%d", i), n: rng.IntN(4), d: time.Duration(1+rng.IntN(5)) * time.Second,
				name: pick(rng, "", "cli", "chat", "mail"),
			})
		}
	}
	if rng.IntN(20) == 0 { // nobody is there, and the node goes down while it finds out
		a := p.submit(rng, 60, when())
		a.input.Agent = "main/resident/nobody"
		p.actions = append(p.actions, a, action{at: a.at, steps: 1 + rng.IntN(12), do: doCrash})
	}
	p.policy(rng)
	p.faults(rng, when)
	slices.SortStableFunc(p.actions, func(a, b action) int { return int(a.at - b.at) })
	return p
}

// policy makes guard ask about some classes of calls, or deny them.
func (p *plan) policy(rng *rand.Rand) {
	p.rules = map[string]string{}
	if rng.IntN(3) != 0 {
		return
	}
	for range 1 + rng.IntN(3) {
		p.rules[configs.GuardKey(pick(rng, "owner", "person", "agent", "system", configs.GuardTainted), pick(rng, "read", "write", "exec", "send"))] = pick(rng, configs.GuardAsk, configs.GuardAsk, configs.GuardAsk, configs.GuardDeny)
	}
}

// faults adds what goes wrong; a good part of the runs has nothing of it.
func (p *plan) faults(rng *rand.Rand, when func() time.Duration) {
	if rng.IntN(3) == 0 {
		return
	}
	for range 1 + rng.IntN(4) {
		a := action{at: when(), steps: rng.IntN(200)}
		switch rng.IntN(16) {
		case 0, 1:
			a.do = doCrash
		case 2, 3:
			a.do = doPower
		case 4:
			a.do, a.n = doTorn, 1+rng.IntN(4)
		case 5:
			a.do = doRestart
		case 6, 7, 8:
			a.do, a.path = doFail, pick(rng,
				"channels", "ledger", "tools", "agents", "agents/main", "agents/main/scheduler", "turn", "turn", "turn",
				"stages/on_input", "stages/before_toolcall", "memory/context", "memory", "acts", "desk", "providers", "config", "guard", "timers")
		case 9, 10:
			a.do, a.n = doLag, 50+rng.IntN(600)
			a.path = pick(rng, "channels", "ledger", "tools", "agents/main", "agents/main/scheduler", "turn", "acts", "desk", "providers", "guard")
		case 11:
			a.do, a.d = doLow, time.Duration(1+rng.IntN(20))*time.Second
		case 12:
			a.do = doSync
		case 14:
			a.do, a.path = doAgain, pick(rng, "acts", "desk")
		case 15:
			a.do, a.path, a.d = doPause, pick(rng, "turn", "acts", "desk"), time.Duration(100+rng.IntN(5000))*time.Millisecond
		case 13:
			a.do, a.name, a.d = doOutage, pick(rng, "web", "chat", "mail"), time.Duration(1+rng.IntN(30))*time.Second
		}
		p.actions = append(p.actions, a)
	}
}

func (p *plan) residents(rng *rand.Rand, when func() time.Duration) {
	name := pick(rng, "cook", "clerk")
	at := when()
	p.actions = append(p.actions, action{at: at, do: doCreate, name: name, id: fmt.Sprintf("R%s", name)})
	if rng.IntN(2) == 0 {
		p.actions = append(p.actions, action{at: at + when()/2, do: doDestroy, name: name, n: rng.IntN(2), steps: rng.IntN(50)})
	}
	for i := range rng.IntN(3) {
		a := p.submit(rng, 50+i, at+when()/2)
		a.input.Agent = "main/resident/" + name
		p.actions = append(p.actions, a)
	}
}

// submit is one input of a person or of the node itself.
func (p *plan) submit(rng *rand.Rand, i int, at time.Duration) action {
	id := fmt.Sprintf("I%02d", i)
	in := &messages.Input{
		Id: id, Agent: "main", Source: messages.InputSource_INPUT_SOURCE_PERSON,
		Principal:    &messages.Principal{Id: "owner", Kind: messages.PrincipalKind_PRINCIPAL_KIND_OWNER},
		Channel:      pick(rng, "cli", "web", "chat", "mail"),
		Conversation: pick(rng, "c1", "c1", "c2"),
		Taint:        messages.Taint_TAINT_TRUSTED,
		Parts:        []*messages.Part{{Content: &messages.Part_Text{Text: "text " + id}}},
	}
	if rng.IntN(4) == 0 {
		in.Principal = &messages.Principal{Id: "guest", Kind: messages.PrincipalKind_PRINCIPAL_KIND_PERSON}
	}
	due := time.Duration(0)
	if rng.IntN(10) == 0 {
		due = time.Duration(1+rng.IntN(6000)) * time.Millisecond
	}
	switch rng.IntN(8) {
	case 0:
		in.Mode = messages.Mode_MODE_QUEUE
	case 1, 2:
		in.Mode = messages.Mode_MODE_INTERRUPT
	case 3:
		in.Mode = messages.Mode_MODE_STEER
	}
	if rng.IntN(4) == 0 {
		level := int32(rng.IntN(4))
		in.Level = &level
	}
	if rng.IntN(3) == 0 {
		in.IdempotencyKey = fmt.Sprintf("k%d", rng.IntN(6))
	}
	switch rng.IntN(12) {
	case 0:
		in.Source = messages.InputSource_INPUT_SOURCE_JOB
	case 1:
		in.Source = messages.InputSource_INPUT_SOURCE_REMINDER
	case 2:
		in.Source = messages.InputSource_INPUT_SOURCE_KERNEL
	case 3:
		in.Source = messages.InputSource_INPUT_SOURCE_SELF
	case 4: // the same again, a little later
		if n := len(p.actions); n > 0 && p.actions[n-1].do == doSubmit {
			before := p.actions[n-1]
			in = proto.CloneOf(before.input)
			in.Id, in.IdempotencyKey, in.Source = id, "", messages.InputSource_INPUT_SOURCE_PERSON
			at = before.at + time.Duration(1+rng.IntN(2000))*time.Millisecond
		}
	}
	return action{at: at, steps: rng.IntN(30), do: doSubmit, id: id, input: in, d: due}
}

func pick(rng *rand.Rand, of ...string) string { return of[rng.IntN(len(of))] }
