package main

import (
	"fmt"
	"strings"

	"homeagent/messages"
)

// outside is the world around the node: what vendor, tools and channels know and do not forget when the node crashes.
type outside struct {
	seed uint64
	// over counts how often a prompt of a round was called too long.
	over map[string]int
	// runs counts the effects of each call of a tool, by call id.
	runs map[string]int
	// read are the texts that the model had before it when it answered, by task.
	read map[string]map[string]bool
	// asked are the calls that people were asked about, allowed those that they allowed.
	asked, allowed map[string]bool
	// sent are the outputs that reached people, by output id, in order.
	sent map[string][]sending
	// down are the channels that take nothing now.
	down map[string]bool
	// violate says what is violated.
	violate func(invariant, format string, args ...any)
}

type sending struct {
	repeated bool
	text     string
	channel  string
	task     string
}

func newOutside(seed uint64) *outside {
	return &outside{seed: seed, over: map[string]int{}, runs: map[string]int{}, asked: map[string]bool{}, allowed: map[string]bool{}, read: map[string]map[string]bool{}, sent: map[string][]sending{}, down: map[string]bool{}}
}

// acted notes the effect of a call.
func (o *outside) acted(call, tool string) {
	o.runs[call]++
	if o.asked[call] && !o.allowed[call] {
		o.violate("approval", "call %s of %s took effect, and nobody has allowed it", call, tool)
	}
	if o.runs[call] > 1 && effectOf(tool) == messages.ToolEffect_TOOL_EFFECT_ONCE {
		o.violate("once", "call %s of %s took effect %d times", call, tool, o.runs[call])
	}
}

// answered notes what stood in a request that was answered.
func (o *outside) answered(task string, texts []string) {
	if o.read[task] == nil {
		o.read[task] = map[string]bool{}
	}
	for _, t := range texts {
		o.read[task][t] = true
	}
}

func effectOf(tool string) messages.ToolEffect {
	kind, _, _ := strings.Cut(tool, "_")
	return effects[kind]
}

// idempotent channels know an output by its id.
var idempotent = map[string]bool{"cli": true, "web": true, "chat": false, "mail": true, "agents": true, "timers": true}

// ownerless channels go no further than the event stream.
var ownerless = map[string]bool{"cli": true, "timers": true}

// reached notes that an output came to people.
func (o *outside) reached(m *messages.OutputIntent, repeated bool) {
	id := m.GetOutputId()
	s := sending{repeated: repeated, text: textOf(m.GetParts()), channel: m.GetChannel(), task: m.GetTaskId()}
	before := o.sent[id]
	o.sent[id] = append(before, s)
	if len(before) == 0 {
		return
	}
	if before[0].text != s.text || before[0].channel != s.channel {
		o.violate("reply", "output %s was %q on %s and then %q on %s", id, before[0].text, before[0].channel, s.text, s.channel)
	}
	if !repeated && !idempotent[s.channel] {
		o.violate("reply", "output %s was sent %d times, the last time without a label", id, len(before)+1)
	}
}

func textOf(parts []*messages.Part) string {
	text := ""
	for _, p := range parts {
		text += p.GetText()
	}
	return text
}

func roundKey(task string, n int) string { return fmt.Sprintf("%s/%d", task, n) }
