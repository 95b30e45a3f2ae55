package config

import (
	"homeagent/actors/kit"
	"homeagent/messages"
)

// ask is who waits for an answer.
type ask struct {
	To   *messages.Address
	Corr string
}

func asked(e kit.Event) ask { return ask{To: e.From, Corr: e.Corr} }

type (
	// survey reads what the registry is like; its result is surveyed.
	survey struct{ kit.Private }
	// read lists the keys of prefixes, or one key; its result is values.
	read struct {
		kit.Private
		Why reason
		// Prefixes of names; empty means all. Not used with key.
		Prefixes []string
		// Key is the one that must exist; empty means a list.
		Key string
	}
	// write sets keys; its result is written. There is one at a time.
	write struct {
		kit.Private
		Entries []*messages.ConfigEntry
		By      *messages.Principal
	}
)

// reason says what a read is for, so that its result finds its way.
type reason struct {
	Ask ask
	// Subscribe marks the read that begins or repairs a subscription.
	Subscribe bool
	// Again marks a repair: nobody asked.
	Again bool
}

// The results of workers.
type (
	// surveyed is the registry at the start of the actor.
	surveyed struct {
		Version  uint64
		Keys     int
		Problems []problem
	}
	problem struct {
		Key    string
		Origin string
		Err    *messages.Error
	}
	// values is what a read found, at a version.
	values struct {
		Why      reason
		Prefixes []string
		List     []*messages.ConfigValue
		Version  uint64
		Err      *messages.Error
	}
	// written is the outcome of a write.
	written struct {
		// Shown are the keys that were named and those that changed.
		Shown []*messages.ConfigValue
		// Changed are the keys whose value in force is different now.
		Changed  []*messages.ConfigValue
		Restart  []string
		Version  uint64
		Problems int
		Err      *messages.Error
	}
)
