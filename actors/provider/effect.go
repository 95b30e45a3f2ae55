package provider

import (
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/memory/usage"
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
	// load reads the sources from the configuration, and with Stored what the store
	// has; its result is loaded.
	load struct {
		kit.Private
		Stored bool
	}
	// openCall notes who waits for a call, closeCall that nobody does any more. The
	// note outlives a restart of the actor.
	openCall struct {
		kit.Private
		CallID string
		To     *messages.Address
	}
	closeCall struct {
		kit.Private
		CallID string
	}
	// recoverOpen takes the notes of an earlier incarnation; its result is orphaned.
	recoverOpen struct{ kit.Private }
	// sum sums usage up; its result is summed.
	sum struct {
		kit.Private
		Ask   ask
		Query usage.Query
		// Answer is what is known of the answer already.
		Answer *messages.UsageAnswer
	}
	// look has a source look at media for a model that cannot; its result is looked.
	look struct {
		kit.Private
		Ask  ask
		Call *messages.CallTool
		// Source looks at the Attachment, which must be of the Kind image or audio.
		Source, Kind, Attachment, Prompt string
		Known                            known
	}
	// sweep looks for rows of days before a day; its result is swept.
	sweep struct {
		kit.Private
		Before string
		Limit  int
	}
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
		Price   configs.Price
	}
	loaded struct {
		Sources []known
		Policy  models.Policy
		Zone    *time.Location
		// Currency names the unit of money of the budgets, which are zero for none.
		Currency               string
		BudgetDay, BudgetMonth float64
		// ImageSource and AudioSource are the helpers that were set; empty means the first that can.
		ImageSource, AudioSource string
		// Keep is how long usage is kept.
		Keep time.Duration
		// Stored is set where it was asked for; Err says why it is missing.
		Stored *usage.Loaded
		Err    error
	}
	orphaned struct{ Calls []openCall }
	looked   struct {
		Why    look
		Result *messages.CompletionResult
		// Problem says why nobody was asked.
		Problem string
	}
	summed struct {
		Why  sum
		Sums usage.Sums
		Err  error
	}
	swept struct {
		Keys []string
		Err  error
	}
	found struct {
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
	// reload asks again for what is stored, restore stores it once more, sweepNow
	// looks for what is too old, offer registers the tools.
	reload   struct{}
	restore  struct{}
	sweepNow struct{}
	offer    struct{}
)
