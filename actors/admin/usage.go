package admin

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"homeagent/messages"
	"homeagent/messages/api"
)

// usage counts model rounds and ends of tasks since the start of the incarnation. Part of the machine: pure.
type usage struct {
	since  time.Time
	models map[modelKey]*api.ModelUsage
	tasks  map[string]uint64
}

type modelKey struct{ source, model string }

func newUsage(now time.Time) *usage {
	return &usage{since: now, models: make(map[modelKey]*api.ModelUsage), tasks: make(map[string]uint64)}
}

// add counts events and reports whether a figure changed.
func (u *usage) add(events []*messages.AgentEvent) bool {
	changed := false
	for _, e := range events {
		if ended := e.GetTask().GetEnded(); ended != nil {
			u.tasks[word(ended.GetEnd(), "END_")]++
			changed = true
		}
		if r := e.GetChain().GetResult(); r != nil {
			u.round(r)
			changed = true
		}
	}
	return changed
}

func (u *usage) round(r *messages.CompletionResult) {
	key := modelKey{r.GetSource(), r.GetModel()}
	m := u.models[key]
	if m == nil {
		m = &api.ModelUsage{Source: key.source, Model: key.model}
		u.models[key] = m
	}
	m.Rounds++
	if r.GetFailure() != nil {
		m.Failed++
	}
	if t := tokens(r.GetUsage()); t != nil {
		m.Input += t.Input
		m.Output += t.Output
		m.Cached += t.Cached
		m.Reasoning += t.Reasoning
		m.CacheWrite += t.CacheWrite
		m.Prompt += t.Prompt
		m.Total += t.Total
	}
}

// show copies the figures, sorted by source and model.
func (u *usage) show() *api.Tokens {
	t := &api.Tokens{Since: u.since.UTC(), Models: make([]api.ModelUsage, 0, len(u.models)), Tasks: maps.Clone(u.tasks)}
	for _, m := range u.models {
		t.Models = append(t.Models, *m)
	}
	slices.SortFunc(t.Models, func(a, b api.ModelUsage) int {
		if a.Source != b.Source {
			return strings.Compare(a.Source, b.Source)
		}
		return strings.Compare(a.Model, b.Model)
	})
	return t
}

// usage is GET /api/v1/usage.
func (f *face) usage(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	q := &messages.QueryUsage{From: r.URL.Query().Get("from"), To: r.URL.Query().Get("to")}
	if by := r.URL.Query().Get("by"); by != "" {
		q.By = strings.Split(by, ",")
	}
	got, no := ask[*messages.UsageAnswer](f, r.Context(), askLimit, "providers", q)
	if no != nil {
		return nil, no
	}
	out := usageReport(got)
	out.Tokens = api.Tokens{Since: f.deps.Started.UTC(), Models: []api.ModelUsage{}, Tasks: map[string]uint64{}}
	if t := f.tokens.Load(); t != nil {
		out.Tokens = *t
	}
	return out, nil
}

func usageReport(a *messages.UsageAnswer) *api.UsageReport {
	return &api.UsageReport{
		From: a.GetFrom(), To: a.GetTo(), Currency: a.GetCurrency(), Cut: a.GetCut(),
		Rows: list(a.GetRows(), usageRow), Total: usageRow(a.GetTotal()),
		Budgets: list(a.GetBudgets(), func(b *messages.Budget) api.Budget {
			return api.Budget{Period: b.GetPeriod(), Limit: money(b.GetLimitMicros()), Spent: money(b.GetSpentMicros()), Ends: moment(b.GetEndsUs())}
		}),
	}
}

func usageRow(r *messages.UsageRow) api.UsageRow {
	out := api.UsageRow{
		Day: r.GetDay(), Source: r.GetSource(), Model: r.GetModel(), Agent: r.GetAgent(), Channel: r.GetChannel(),
		Conversation: r.GetConversation(), Calls: r.GetCalls(), Failed: r.GetFailed(), Cost: money(r.GetCostMicros()), Unpriced: r.GetUnpriced(),
	}
	if t := tokens(r.GetUsage()); t != nil {
		out.Usage = *t
	}
	return out
}

// money gives millionths of the unit of money as a number of units.
func money(micros int64) float64 { return float64(micros) / 1e6 }
