package e2e

import (
	"testing"

	"homeagent/messages/api"
	"homeagent/providers/providertest"
)

// TestUsageOutlivesARestart kills a node: what models took is known afterwards, and a source without quota is left alone.
func TestUsageOutlivesARestart(t *testing.T) {
	n, v := newNode(t), newVendor(t)
	n.start()
	n.addSource(v, "first")
	n.addSource(v, "second", "--priority", "1")
	v.Load(providertest.Script{Steps: []providertest.Step{
		{Times: 1, Status: 429, Body: `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`},
		{Text: []string{"Hello."}, Usage: &providertest.Usage{In: 1_000_000, Out: 100_000}},
	}})
	for _, s := range []string{"price_in=2", "price_out=10"} {
		n.waiter("config", "set", "core.llm.sources.second."+s).must(t)
	}
	contains(t, n.waiter("chat", "hi").must(t).stdout, "Hello.")
	report := func() (u api.UsageReport) {
		t.Helper()
		decodeJSON(t, n.waiter("--json", "usage", "--by", "source").must(t).stdout, &u)
		return u
	}
	before := report()
	if len(before.Rows) != 2 || before.Rows[0].Failed != 1 || before.Rows[1].Cost != 3 || before.Rows[1].Prompt != 1_000_000 {
		t.Errorf("before: %+v", before.Rows)
	}
	asked := len(v.Requests())
	n.kill()
	n.start()
	if after := report(); len(after.Rows) != 2 || after.Total.Cost != 3 || after.Total.Calls != before.Total.Calls {
		t.Errorf("after: %+v", after)
	}
	contains(t, n.waiter("providers").must(t).stdout, "first", "cooling", "quota_exhausted")
	contains(t, n.waiter("chat", "hi again").must(t).stdout, "Hello.")
	if got := len(v.Requests()) - asked; got != 1 {
		t.Errorf("%d requests for one answer: the source without quota was asked again", got)
	}
	n.waiter("config", "set", "core.llm.budget_day", "5").must(t)
	contains(t, n.waiter("usage").must(t).stdout, "budget of this day: 6.00 of 5.00 USD")
}
