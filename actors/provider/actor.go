package provider

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/memory/usage"
	"homeagent/messages"
	models "homeagent/providers"
)

// Rows of this package in the kernel's table.
const (
	// Kind is providers, at providers.
	Kind = "providers"
	// SourceKind is one source, at providers/source/<name>; spawned with its SourceSpec.
	SourceKind = "source"
	// CallKind is one call, below its source; spawned with its Complete.
	CallKind = "call"
)

// Deps are what the kernel gives the actors of this package.
type Deps struct {
	// Client makes the calls.
	Client *models.Client
	// Settings gives the configuration in force.
	Settings func() *configs.Snapshot
	// Book is shared by all actors of this package on a node.
	Book *Book
	// Locals are the model servers looked for on loopback; nil means models.Locals.
	Locals []models.Local
	// Config is the actor that keeps settings; nil means "config".
	Config *messages.Address
	// Payload tells what stored media is; nil without an error for what is not
	// there. Nil means that none is stored.
	Payload func(id string) (*messages.PayloadRef, error)
	// Usage reads what Ledger has stored; without Ledger nothing is stored, and
	// usage counts from the start of the actor.
	Usage  *usage.Engine
	Ledger *messages.Address
	// Tools takes the tools of this actor; nil means that none are offered.
	Tools *messages.Address
}

// Props makes providers.
func Props(d Deps) kit.Props {
	if d.Locals == nil {
		d.Locals = models.Locals
	}
	if d.Config == nil {
		d.Config = kit.Path("config")
	}
	return kit.Props{Kind: Kind, New: func() kit.Machine { return New(Params{Config: d.Config, Ledger: d.Ledger, Tools: d.Tools}) }, Perform: d.perform, System: true}
}

// SourceProps makes a source from its SourceSpec.
func SourceProps(params proto.Message) (kit.Props, error) {
	spec, ok := params.(*messages.SourceSpec)
	if !ok {
		return kit.Props{}, fmt.Errorf("a source is made from a SourceSpec, not from %T", params)
	}
	return kit.Props{Kind: SourceKind, New: func() kit.Machine { return NewSource(spec) }, System: true}, nil
}

// CallProps makes a call from its Complete.
func (d Deps) CallProps(params proto.Message) (kit.Props, error) {
	c, ok := params.(*messages.Complete)
	if !ok {
		return kit.Props{}, fmt.Errorf("a call is made from a Complete, not from %T", params)
	}
	return kit.Props{Kind: CallKind, New: func() kit.Machine { return NewCall(c) }, Perform: d.performCall}, nil
}

func (d Deps) perform(sh kit.Shell, e kit.Effect) {
	switch e := e.(type) {
	case load:
		now := sh.Now()
		sh.Go("load", 0, func(context.Context, func(any)) any { return d.load(now, e.Stored) })
	case openCall:
		d.Book.opened(e.CallID, e.To)
	case closeCall:
		d.Book.closed(e.CallID)
	case recoverOpen:
		sh.Post(orphaned{d.Book.orphans()})
	case sum:
		sh.Go("sum", 0, func(context.Context, func(any)) any {
			sums, err := d.ask(e.Query)
			return summed{Why: e, Sums: sums, Err: err}
		})
	case look:
		sh.Go(lookWork+e.Call.GetCall().GetCallId(), lookTime, func(ctx context.Context, _ func(any)) any { return d.look(ctx, e) })
	case sweep:
		sh.Go("sweep", 0, func(context.Context, func(any)) any {
			keys, err := d.Usage.Old(e.Before, e.Limit)
			return swept{keys, err}
		})
	case find:
		sh.Go("find", 0, func(ctx context.Context, _ func(any)) any { return d.find(ctx, e) })
	case try:
		sh.Go("try", 0, func(ctx context.Context, _ func(any)) any { return d.try(ctx, e) })
	default:
		panic(fmt.Sprintf("provider: effect %T has no performer", e))
	}
}

func (d Deps) load(now time.Time, stored bool) loaded {
	out := d.Book.fill(d.Settings())
	if stored {
		got, err := d.Usage.Load(usage.Month(usage.Day(now, out.Zone)))
		out.Stored, out.Err = &got, err
	}
	return out
}

// ask sums up; without a store there are only the rows that the machine has.
func (d Deps) ask(q usage.Query) (usage.Sums, error) {
	if d.Usage == nil {
		return usage.Only(q), nil
	}
	return d.Usage.Ask(q)
}

// host is that of an address, which tells servers apart: one has several paths.
func host(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return base
	}
	return strings.Replace(u.Host, "localhost", "127.0.0.1", 1)
}

// find leaves out the servers that are configured already.
func (d Deps) find(ctx context.Context, e find) found {
	out := found{Ask: e.Ask}
	taken := make(map[string]bool)
	for _, s := range *d.Book.sources.Load() {
		taken[host(s.BaseURL)] = true
	}
	for _, s := range d.Client.FindLocal(ctx, d.Locals) {
		if !taken[host(s.GetBaseUrl())] {
			out.Specs = append(out.Specs, s)
		}
	}
	return out
}

func (d Deps) try(ctx context.Context, e try) tried {
	src, ok := d.Book.Get(e.Known)
	if !ok {
		src = models.FromSpec(e.Spec, e.Key.Reveal())
	}
	prints := src.KeyPrints()
	if len(prints) < 2 {
		return tried{Why: e, Result: d.Client.TestSource(ctx, src)}
	}
	var last *messages.SourceTested
	for i, print := range prints {
		last = d.Client.TestSource(ctx, src.WithKey(print))
		if !last.GetWorks() {
			last.Failure.Error.Message = fmt.Sprintf("key %d of %d: %s", i+1, len(prints), last.GetFailure().GetError().GetMessage())
			break
		}
	}
	return tried{Why: e, Result: last}
}

const (
	runWork  = "run"
	lookWork = "look/"
)

// look asks a source about one attachment.
func (d Deps) look(ctx context.Context, l look) looked {
	src, ok := d.Book.Get(l.Source)
	if !ok || d.Payload == nil {
		return looked{Why: l, Problem: "there is no stored media, or nobody to look at it"}
	}
	ref, err := d.Payload(l.Attachment)
	kind, _, _ := strings.Cut(ref.GetMediaType(), "/")
	switch {
	case err != nil:
		return looked{Why: l, Problem: "the attachment cannot be read"}
	case ref == nil:
		return looked{Why: l, Problem: "there is no attachment of that id"}
	case kind != l.Kind:
		return looked{Why: l, Problem: "the attachment is " + ref.GetMediaType()}
	}
	res, _ := d.Client.Stream(ctx, src, &messages.CompletionRequest{
		CallId: l.Call.GetCall().GetCallId(), TaskId: l.Call.GetTaskId(), Agent: l.Call.GetAgent(), Question: l.Prompt,
		Messages: []*messages.ChatMessage{{
			Role: messages.Role_ROLE_USER, Parts: []*messages.Part{
				{Content: &messages.Part_Text{Text: l.Prompt}}, {Content: &messages.Part_Payload{Payload: ref}},
			},
		}},
	}, models.Hooks{})
	return looked{Why: l, Result: res}
}

func (d Deps) performCall(sh kit.Shell, e kit.Effect) {
	r, ok := e.(run)
	if !ok {
		panic(fmt.Sprintf("provider: effect %T has no performer", e))
	}
	sh.Go(runWork, 0, func(ctx context.Context, emit func(any)) any { return d.run(ctx, r, emit) })
}

func (d Deps) run(ctx context.Context, r run, emit func(any)) any {
	req := r.Complete.GetRequest()
	src, ok := d.Book.Get(r.Source)
	if !ok {
		return finished{failure(r.Source, messages.ErrorKind_ERROR_KIND_NO_SOURCE, "the source was removed", models.Hint(messages.ErrorKind_ERROR_KIND_NO_SOURCE))}
	}
	res, _ := d.Client.Stream(ctx, src.WithKey(r.Complete.GetKey()), req, models.Hooks{
		Sent: func(s models.Sent) {
			emit(sent{&messages.RequestSent{
				CallId: req.GetCallId(), Source: src.Name, Model: s.Model, RequestHash: s.Hash, Attempt: r.Attempt,
			}})
		},
		Delta: func(d *messages.Delta) { emit(d) },
	})
	return finished{res}
}

// failure makes the result of an attempt that failed on this side.
func failure(source string, kind messages.ErrorKind, text, hint string) *messages.CompletionResult {
	f := &models.Failure{Kind: kind, Source: source, Message: text, Hint: hint}
	return &messages.CompletionResult{Source: source, Finish: messages.Finish_FINISH_ERROR, Failure: f.Proto()}
}
