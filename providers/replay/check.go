package replay

import (
	"context"
	"fmt"
	"strings"

	"homeagent/messages"
	"homeagent/providers"
)

// Outcome is what one way of sending a recording gave.
type Outcome struct {
	// Name of the transform or cut.
	Name string
	// Diffs from what must come of it; empty means that it held.
	Diffs []string
}

// Check runs a recording under every transform and cut that it has, in a fixed
// order. The error is that of the adapter itself, when nothing could be run.
func Check(ctx context.Context, adapters providers.Adapters, adapter string, rec Recording) ([]Outcome, error) {
	if _, err := adapters.Adapter(adapter); err != nil {
		return nil, err
	}
	var out []Outcome
	for _, t := range Transforms(rec.Kind()) {
		if d, ok := checkTransform(ctx, adapters, adapter, rec, t); ok {
			out = append(out, Outcome{t.Name, d})
		}
	}
	if !rec.Stream() || rec.Status/100 != 2 || rec.Want.Error != nil {
		return out, nil
	}
	cuts, err := Cuts(ctx, adapters, adapter, rec)
	if err != nil {
		return out, err
	}
	if cuts == nil {
		out = append(out, Outcome{"cuts", []string{"the stream has no end mark, so that it could not be told from a cut one"}})
	}
	for _, c := range cuts {
		out = append(out, Outcome{c.Name, checkCut(ctx, adapters, adapter, rec, c)})
	}
	return out, nil
}

func checkTransform(ctx context.Context, adapters providers.Adapters, adapter string, rec Recording, t Transform) ([]string, bool) {
	if strings.HasPrefix(t.Name, "T13") && rec.Status/100 != 2 {
		return nil, false // of a refusal only the beginning is read
	}
	sent := rec
	if t.Body != nil {
		if sent.Body = t.Body(rec.Body); sent.Body == nil {
			return nil, false
		}
	}
	if strings.HasPrefix(t.Name, "T10") {
		m, err := find(ctx, adapters, adapter, sent)
		if err == nil && m.finish < 0 {
			return nil, false // what ends it is the mark that the transform takes away
		}
	}
	var shown strings.Builder
	res, err := Run(ctx, adapters, adapter, sent, t.Delivery, providers.Hooks{
		Delta: func(d *messages.Delta) { shown.WriteString(d.GetText()) },
	})
	diffs := rec.Want.Compare(res, err)
	if all := res.GetText() + res.GetRefusal(); shown.String() != all {
		diffs = append(diffs, fmt.Sprintf("the deltas say %q, the result %q", shown.String(), all))
	}
	return diffs, true
}

func checkCut(ctx context.Context, adapters providers.Adapters, adapter string, rec Recording, c Cut) (diffs []string) {
	sent := rec
	sent.Body = c.Body
	res, err := Run(ctx, adapters, adapter, sent, Delivery{End: c.End}, providers.Hooks{})
	if err == nil {
		return []string{fmt.Sprintf("%d of %d bytes are taken for a whole answer", len(c.Body), len(rec.Body))}
	}
	want := "stream_truncated"
	if strings.HasPrefix(c.Name, "C4") {
		want = "server"
	}
	if kind := providers.KindName(providers.AsFailure(err).Kind); kind != want {
		diffs = append(diffs, fmt.Sprintf("error kind: got %s (%s), want %s", kind, err, want))
	}
	if res.GetFinish() != messages.Finish_FINISH_ERROR {
		diffs = append(diffs, fmt.Sprintf("finish: got %s, want error", res.GetFinish()))
	}
	if !strings.HasPrefix(rec.Want.Text, res.GetText()) {
		diffs = append(diffs, fmt.Sprintf("the text %q is no beginning of %q", res.GetText(), rec.Want.Text))
	}
	for _, call := range res.GetCalls() {
		if call.GetInvalid() == "" {
			diffs = append(diffs, fmt.Sprintf("the call %v could run", call))
		}
	}
	return diffs
}
