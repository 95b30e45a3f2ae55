package provider

import (
	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/messages"
	models "homeagent/providers"
)

// ask is who waits for an answer.
type ask struct {
	To   *messages.Address
	Corr string
}

func asked(e kit.Event) ask { return ask{To: e.From, Corr: e.Corr} }

func (a ask) reply(m proto.Message) kit.Effect { return kit.Reply{To: a.To, Corr: a.Corr, Msg: m} }

// The effects of providers.
type (
	// load reads the sources from the configuration; its result is loaded.
	load struct{ kit.Private }
	// find looks for model servers on loopback; its result is found.
	find struct {
		kit.Private
		Ask ask
	}
	// try makes a live completion; its result is tried.
	try struct {
		kit.Private
		Ask ask
		// Known names a configured source; else Spec and Key describe one.
		Known string
		Spec  *messages.SourceSpec
		Key   configs.Secret
		// Keep says that it is to be kept when it works, Force also when not.
		Keep, Force bool
	}
)

// run makes the call of a call actor; its results are sent, *messages.Delta and finished.
type run struct {
	kit.Private
	Source   string
	Attempt  int32
	Complete *messages.Complete
}

// The results of workers.
type (
	// known is one source without its secrets.
	known struct {
		Spec   *messages.SourceSpec
		HasKey bool
		// BuiltIn says that no setting names it, so that none can be taken away.
		BuiltIn bool
		Route   models.Route
	}
	loaded struct{ Sources []known }
	found  struct {
		Ask   ask
		Specs []*messages.SourceSpec
	}
	tried struct {
		Why    try
		Result *messages.SourceTested
	}
	sent     struct{ Msg *messages.RequestSent }
	finished struct{ Result *messages.CompletionResult }
)

// The timers of providers.
type (
	// again asks the source of a waiting request once more.
	again struct{ CallID string }
	// late ends a request whose deadline has passed.
	late struct{ CallID string }
)
