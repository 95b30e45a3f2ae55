package channels

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// pluginTop is the highest level that anything a plugin hands over may have; this is the one place where it is clamped.
const pluginTop = 3

// by is who hands an input over, and how.
type by struct {
	// plugin says that a plugin does, by the address it sends from.
	plugin bool
	// interrupt says that the plugin interrupts, with the level it wrote.
	interrupt bool
	level     string
}

// pluginPaths is where plugins live in the tree.
const pluginPaths = "plugins/"

func byOf(from *messages.Address, m *messages.SubmitInput) by {
	return by{
		plugin: strings.HasPrefix(from.GetPath(), pluginPaths), interrupt: m.GetInterrupt(), level: m.GetLevel(),
	}
}

// levelWord reads a level as plugins write it: L1 to L4 in either case and nothing else.
func levelWord(s string) (int32, bool) {
	if len(s) != 2 || s[0] != 'L' && s[0] != 'l' || s[1] < '1' || s[1] > '4' {
		return 1, false
	}
	return int32(s[1] - '0'), true
}

// classify gives an input its level, its mode and whether a person waits for it, from the call it came by and the kind
// of its channel, never from its content. It returns a copy, and a warning when what was asked for is not what it gets.
func classify(in *messages.Input, ch *messages.RegisterChannel, from by) (*messages.Input, string) {
	out := proto.CloneOf(in)
	if out.GetMode() == messages.Mode_MODE_UNSPECIFIED {
		out.Mode = ch.GetMode()
	}
	if out.GetMode() == messages.Mode_MODE_UNSPECIFIED {
		out.Mode = messages.Mode_MODE_STEER
	}
	if out.GetAgent() == "" {
		out.Agent = mainAgent
	}
	out.Joint = ch.GetJoint()
	if from.plugin {
		return pluginInput(out, ch, from)
	}
	out.Level = proto.Int32(sourceLevel(out, ch))
	return out, ""
}

// sourceLevel is the level of what the core itself hands over.
func sourceLevel(in *messages.Input, ch *messages.RegisterChannel) int32 {
	if level, ok := timerLevel(in); ok {
		return level
	}
	switch in.GetSource() {
	case messages.InputSource_INPUT_SOURCE_PERSON:
		return personLevel(in, ch)
	case messages.InputSource_INPUT_SOURCE_CHILD, messages.InputSource_INPUT_SOURCE_TERMINAL:
		if in.GetPersonWaits() {
			return 2
		}
		return 1
	case messages.InputSource_INPUT_SOURCE_REMINDER:
		return 3
	case messages.InputSource_INPUT_SOURCE_PARENT, messages.InputSource_INPUT_SOURCE_KERNEL:
		return 4
	default: // a job and what the agent gave itself wait their turn
		return 0
	}
}

// timerLevel is the level of a timer that has one of its own, 0 to 3: only the node itself gives a job or a reminder
// another level than that of its kind.
func timerLevel(in *messages.Input) (int32, bool) {
	timed := in.GetSource() == messages.InputSource_INPUT_SOURCE_JOB || in.GetSource() == messages.InputSource_INPUT_SOURCE_REMINDER
	node := in.GetPrincipal().GetKind() == messages.PrincipalKind_PRINCIPAL_KIND_SYSTEM
	return in.GetLevel(), timed && node && in.Level != nil && in.GetLevel() <= 3
}

// personLevel is the level of what a person says: the floor of the channel, more when they ask for it, at most 3; level 0
// only when they ask for just that.
func personLevel(in *messages.Input, ch *messages.RegisterChannel) int32 {
	asked := in.Level != nil
	if asked && in.GetLevel() == 0 && in.GetMode() != messages.Mode_MODE_INTERRUPT {
		in.Mode = messages.Mode_MODE_QUEUE
		return 0
	}
	if interactive(ch) {
		in.PersonWaits = true
	}
	level := int32(1)
	if in.GetPersonWaits() {
		level = 2
	}
	if asked {
		level = max(level, in.GetLevel())
	}
	if in.GetMode() == messages.Mode_MODE_INTERRUPT {
		level = max(level, 3)
	}
	return min(level, 3)
}

func interactive(ch *messages.RegisterChannel) bool {
	return ch.GetKind() == messages.ChannelKind_CHANNEL_KIND_INTERACTIVE
}

// pluginInput gives what a plugin hands over its level: a text waits its turn, an interrupt has the level that the plugin
// wrote, or 1. What a person says has at least the floor of the channel; that a person waits is known by the registered
// kind of the channel alone, not by what the plugin says.
func pluginInput(in *messages.Input, ch *messages.RegisterChannel, from by) (*messages.Input, string) {
	person := in.GetSource() == messages.InputSource_INPUT_SOURCE_PERSON
	in.PersonWaits = person && interactive(ch)
	level, warning := int32(0), ""
	if from.interrupt {
		var ok bool
		if level, ok = levelWord(from.level); !ok && from.level != "" {
			warning = fmt.Sprintf("There is no level %q: it runs as L1. Levels are L1 to L3.", clip(from.level))
		}
		if level > pluginTop {
			warning = "L4 is for the kernel: it runs as L3."
		}
	}
	switch {
	case in.GetPersonWaits():
		level = max(level, 2)
	case person:
		level = max(level, 1)
	}
	if in.GetMode() == messages.Mode_MODE_INTERRUPT && from.interrupt {
		level = max(level, 3)
	}
	if level == 0 {
		in.Mode = messages.Mode_MODE_QUEUE
	}
	in.Level = proto.Int32(min(level, pluginTop))
	return in, warning
}

// clip cuts foreign text that is quoted in a message.
func clip(s string) string {
	const most = 32
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
