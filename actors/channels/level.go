package channels

import (
	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// classify gives an input its level, its mode and whether a person waits for it, from the call it came by and the kind
// of its channel, never from its content. It returns a copy.
func classify(in *messages.Input, ch *messages.RegisterChannel) *messages.Input {
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
	var level int32
	switch out.GetSource() {
	case messages.InputSource_INPUT_SOURCE_PERSON:
		level = personLevel(out, ch)
	case messages.InputSource_INPUT_SOURCE_CHILD, messages.InputSource_INPUT_SOURCE_TERMINAL:
		level = 1
		if out.GetPersonWaits() {
			level = 2
		}
	case messages.InputSource_INPUT_SOURCE_REMINDER:
		level = 3
	case messages.InputSource_INPUT_SOURCE_PARENT, messages.InputSource_INPUT_SOURCE_KERNEL:
		level = 4
	default: // a job and what the agent gave itself wait their turn
	}
	out.Level = proto.Int32(level)
	return out
}

// personLevel is the level of what a person says: the floor of the channel, more when they ask for it, at most 3; level 0
// only when they ask for just that.
func personLevel(in *messages.Input, ch *messages.RegisterChannel) int32 {
	floor := int32(1)
	if ch.GetKind() == messages.ChannelKind_CHANNEL_KIND_INTERACTIVE {
		floor = 2
	}
	asked := in.Level != nil
	if asked && in.GetLevel() == 0 && in.GetMode() != messages.Mode_MODE_INTERRUPT {
		in.Mode = messages.Mode_MODE_QUEUE
		return 0
	}
	if floor == 2 {
		in.PersonWaits = true
	}
	if in.GetPersonWaits() {
		floor = 2
	}
	level := floor
	if asked {
		level = max(level, in.GetLevel())
	}
	if in.GetMode() == messages.Mode_MODE_INTERRUPT {
		level = max(level, 3)
	}
	return min(level, 3)
}
