package provider

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/messages"
	models "homeagent/providers"
)

// administer handles what people ask about sources.
func (m *machine) administer(e kit.Event) {
	switch v := e.Msg.(type) {
	case *messages.ListSources:
		if v.GetConfiguredOnly() {
			m.add(e.Reply(m.list(nil)))
			return
		}
		m.add(find{Ask: asked(e)})
	case found:
		m.add(v.Ask.reply(m.list(v.Specs)))
	case *messages.AddSource:
		m.addSource(e, v)
	case *messages.TestSource:
		if m.known(v.GetName()) == nil {
			m.add(e.Reply(unknown(v.GetName())))
			return
		}
		m.add(try{Ask: asked(e), Known: v.GetName()})
	case tried:
		m.tried(v)
	case *messages.RemoveSource:
		m.remove(e, v)
	case *messages.ResetSource:
		if !m.router.Reset(v.GetName()) {
			m.add(e.Reply(unknown(v.GetName())))
			return
		}
		m.add(e.Reply(&messages.Ok{}))
		m.show()
	case *messages.UseSource:
		m.use(e, v)
	case *messages.CallTool:
		m.call(e, v)
	case *messages.QueryUsage:
		m.query(e, v)
	default:
		m.own(e)
	}
}

// own handles answers to this actor's own requests, its timers and its workers.
func (m *machine) own(e kit.Event) {
	switch v := e.Msg.(type) {
	case *messages.ConfigSetResult:
		m.configured(e.Corr, v.GetError())
	case *messages.LedgerFigures:
		m.add(load{Stored: true})
	case *messages.LedgerDone:
		if v.GetError() != nil {
			m.configured(e.Corr, v.GetError())
		}
	case *messages.Error:
		m.configured(e.Corr, v)
	case *messages.Busy:
		m.configured(e.Corr, &messages.Error{Code: kit.CodeBusy, Message: "the node is busy", Hint: "Try again."})
	case reload:
		m.add(kit.Send{To: m.p.Ledger, Corr: corrWritten, Msg: &messages.LedgerStats{}})
	case restore:
		m.storeAll()
	case offer:
		m.register("")
	case sweepNow:
		m.sweep()
	case swept:
		m.swept(v)
	case summed:
		m.summed(v)
	case looked:
		m.looked(v)
	case *messages.CancelTool:
		m.add(kit.CancelWork{Key: lookWork + v.GetCallId()})
	}
}

func unknown(name string) *messages.Error {
	return &messages.Error{
		Code: "unknown_source", Message: fmt.Sprintf("there is no model source %q", name),
		Hint: "List the sources to see their names.", Details: map[string]string{"source": name},
	}
}

func (m *machine) known(name string) *known {
	for i := range m.sources {
		if m.sources[i].Spec.GetName() == name {
			return &m.sources[i]
		}
	}
	return nil
}

func (m *machine) list(specs []*messages.SourceSpec) *messages.SourceList {
	out := &messages.SourceList{Found: specs}
	for _, s := range m.router.Standings(m.now) {
		k := m.known(s.Name)
		f := m.figure(s.Name)
		v := &messages.SourceView{
			Spec: k.Spec, State: s.State, Active: int32(f.active), Calls: f.calls, Failed: f.failed, HasKey: k.HasKey,
		}
		if !s.Until.IsZero() {
			v.CoolingUntilUs = s.Until.UnixMicro()
		}
		if s.Last != nil {
			v.LastFailure = s.Last.Proto()
		}
		v.Keys = keyViews(s.Keys)
		out.Sources = append(out.Sources, v)
	}
	return out
}

func keyViews(keys []models.Standing) []*messages.KeyView {
	out := make([]*messages.KeyView, len(keys))
	for i, s := range keys {
		out[i] = &messages.KeyView{Place: int32(i + 1), State: s.State}
		if !s.Until.IsZero() {
			out[i].CoolingUntilUs = s.Until.UnixMicro()
		}
		if s.Last != nil {
			out[i].LastFailure = s.Last.Proto()
		}
	}
	return out
}

func (m *machine) addSource(e kit.Event, a *messages.AddSource) {
	spec := a.GetSpec()
	if err := models.FromSpec(spec, "").Check(); err != nil {
		f := &models.Failure{
			Kind: messages.ErrorKind_ERROR_KIND_INVALID_REQUEST, Source: spec.GetName(),
			Message: strings.TrimPrefix(err.Error(), "providers: "), Hint: "Correct that and add the source again.",
		}
		m.add(e.Reply(&messages.SourceTested{Failure: f.Proto()}))
		return
	}
	m.add(try{Ask: asked(e), Spec: spec, Key: configs.NewSecret(a.GetApiKey()), Keep: true, Force: a.GetForce()})
}

// tried answers a test, or keeps what was tested. A working test of a known
// source ends its cooldown.
func (m *machine) tried(t tried) {
	switch {
	case !t.Why.Keep:
		if t.Result.GetWorks() {
			m.cured(t.Why.Known)
		}
		m.add(t.Why.Ask.reply(t.Result))
	case !t.Result.GetWorks() && !t.Why.Force:
		m.add(t.Why.Ask.reply(t.Result))
	default:
		m.save(saving{t.Why.Ask, t.Result}, entries(t.Why.Spec, t.Why.Key))
	}
}

// cured ends the past of a source whose test worked.
func (m *machine) cured(name string) {
	before, known := m.router.Standing(m.now, name)
	m.router.Reset(name)
	if known && before.Last != nil {
		m.sourceNotice("ready", name, "")
	}
	m.show()
}

// use puts a source first, switched on: the others keep their order.
func (m *machine) use(e kit.Event, u *messages.UseSource) {
	k := m.known(u.GetName())
	switch {
	case k == nil:
		m.add(e.Reply(unknown(u.GetName())))
		return
	case k.BuiltIn:
		m.add(e.Reply(builtIn(u.GetName())))
		return
	}
	set := func(name, field, value string) *messages.ConfigEntry {
		return &messages.ConfigEntry{Key: configs.SourceKey(name, field), Value: &value}
	}
	entries := []*messages.ConfigEntry{set(u.GetName(), configs.SourceEnabled, "true")}
	place := 0
	order := []string{u.GetName()}
	for _, s := range m.router.Standings(m.now) {
		if s.Name != u.GetName() {
			order = append(order, s.Name)
		}
	}
	for _, name := range order {
		if k := m.known(name); !k.BuiltIn {
			entries = append(entries, set(name, configs.SourcePriority, strconv.Itoa(place)))
			place++
		}
	}
	m.save(saving{ask: asked(e)}, entries)
}

func builtIn(name string) *messages.Error {
	return &messages.Error{
		Code: "built_in", Message: fmt.Sprintf("the source %q is built in: it answers where no other one is on", name),
		Hint: "Add a source to take its place.", Details: map[string]string{"source": name},
	}
}

// entries are the settings of a source; what is at its default is left out.
func entries(s *messages.SourceSpec, key configs.Secret) []*messages.ConfigEntry {
	var out []*messages.ConfigEntry
	set := func(field, value string) {
		if value != "" {
			out = append(out, &messages.ConfigEntry{Key: configs.SourceKey(s.GetName(), field), Value: &value})
		}
	}
	number := func(field string, n int32) {
		if n != 0 {
			set(field, strconv.Itoa(int(n)))
		}
	}
	set(configs.SourceAdapter, s.GetAdapter())
	set(configs.SourceBaseURL, s.GetBaseUrl())
	set(configs.SourceModel, s.GetModel())
	set(configs.SourceAPIKey, key.Reveal())
	number(configs.SourcePriority, s.GetPriority())
	number(configs.SourceMaxConcurrent, s.GetMaxConcurrent())
	number(configs.SourceContextWindow, s.GetContextWindow())
	set(configs.SourceEnabled, strconv.FormatBool(s.GetEnabled()))
	return out
}

func (m *machine) remove(e kit.Event, r *messages.RemoveSource) {
	if m.known(r.GetName()) == nil {
		m.add(e.Reply(unknown(r.GetName())))
		return
	}
	if m.known(r.GetName()).BuiltIn {
		m.add(e.Reply(builtIn(r.GetName())))
		return
	}
	m.save(saving{ask: asked(e)}, []*messages.ConfigEntry{{Key: configs.SourcePrefix + r.GetName()}})
}

// saving is a ConfigSet under way.
type saving struct {
	ask    ask
	tested *messages.SourceTested // nil for a removal or a new order
}

// save has config keep settings; its answer comes with the same correlation.
func (m *machine) save(s saving, entries []*messages.ConfigEntry) {
	m.saved++
	corr := "save/" + strconv.Itoa(m.saved)
	m.saves[corr] = s
	m.add(kit.Send{To: m.p.Config, Corr: corr, Msg: &messages.ConfigSet{Entries: entries}})
}

// configured takes the answer to a request of this actor; err is nil when it was
// done.
func (m *machine) configured(corr string, err *messages.Error) {
	switch corr {
	case corrWritten:
		m.add(kit.After{Key: "written", D: askAgain, Msg: reload{}})
		return
	case corrStore:
		m.unstored(err)
		return
	case corrTools:
		m.add(kit.Log{Level: kit.Warn, Text: "tools were not taken", Attrs: []any{"error", err.GetMessage()}},
			kit.After{Key: "tools", D: askAgain, Msg: offer{}})
		return
	}
	s, ok := m.saves[corr]
	if !ok {
		return
	}
	delete(m.saves, corr)
	switch {
	case s.tested == nil && err != nil:
		m.add(s.ask.reply(err))
	case s.tested == nil:
		m.settle(s.ask, &messages.Ok{})
	case err != nil:
		m.add(s.ask.reply(&messages.SourceTested{
			Works: s.tested.GetWorks(), Text: s.tested.GetText(), Model: s.tested.GetModel(), TookMs: s.tested.GetTookMs(),
			Failure: &messages.CompletionFailure{Kind: messages.ErrorKind_ERROR_KIND_INVALID_REQUEST, Error: err},
		}))
	default:
		m.settle(s.ask, &messages.SourceTested{
			Works: s.tested.GetWorks(), Text: s.tested.GetText(), Model: s.tested.GetModel(), TookMs: s.tested.GetTookMs(),
			Failure: s.tested.GetFailure(), Saved: true,
		})
	}
}

// Show is what people see of providers.
func (m *machine) Show() any {
	type view struct {
		Name   string `json:"name"`
		State  string `json:"state"`
		Active int    `json:"active"`
		Calls  uint64 `json:"calls"`
		Failed uint64 `json:"failed"`
	}
	type pending struct {
		CallID  string `json:"call_id"`
		Source  string `json:"source"`
		Attempt int    `json:"attempt"`
		Waiting bool   `json:"waiting"`
	}
	out := struct {
		Sources  []view    `json:"sources"`
		Requests []pending `json:"requests"`
	}{[]view{}, []pending{}}
	for _, s := range m.router.Standings(m.now) {
		f := m.figure(s.Name)
		out.Sources = append(out.Sources, view{s.Name, s.State, f.active, f.calls, f.failed})
	}
	for id, r := range m.requests {
		out.Requests = append(out.Requests, pending{id, r.source, r.attempt, r.waiting})
	}
	slices.SortFunc(out.Requests, func(a, b pending) int { return cmp.Compare(a.CallID, b.CallID) })
	return out
}
