package providers_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
	"homeagent/providers"
)

func calls(q *messages.CompletionRequest) (ids, results []string) {
	for _, m := range q.GetMessages() {
		for _, c := range m.GetCalls() {
			ids = append(ids, c.GetVendorId())
		}
		if m.GetRole() == messages.Role_ROLE_TOOL {
			results = append(results, m.GetVendorCallId())
		}
	}
	return ids, results
}

var legalName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)

var forms = map[providers.IDForm]*regexp.Regexp{
	providers.IDAny:   regexp.MustCompile(`.`),
	providers.IDPlain: regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`),
	providers.IDNine:  regexp.MustCompile(`^[A-Za-z0-9]{9}$`),
}

// Ids of other vendors are refused, and so is a whole conversation that holds
// one: they are rewritten in calls and results alike, the same way each time.
func TestFitRewritesIDs(t *testing.T) {
	history := "u(a) a(+toolu_1+functions.add:0) t(functions.add:0) t(toolu_1) a(b) a(+call_0) t(call_0) u(c) a(+call_0) t(call_0) a(+abcDEF123) t(abcDEF123)"
	for form, legal := range forms {
		q := &messages.CompletionRequest{Messages: parse(t, history)}
		for i, m := range q.Messages {
			for j, c := range m.GetCalls() {
				c.CallId, c.MadeId = fmt.Sprintf("turn%d.%d", i, j), c.VendorId == "call_0"
			}
		}
		before := proto.Clone(q)
		got, names := providers.Fit(q, "mine", providers.Info{ToolIDs: form, Structured: true})
		ids, results := calls(got)
		if fmt.Sprint(ids) != fmt.Sprint(results) {
			t.Errorf("%s: calls %v, results %v", form, ids, results)
		}
		seen := map[string]bool{}
		for _, id := range ids {
			if !legal.MatchString(id) || seen[id] {
				t.Errorf("%s: %v has an illegal or repeated id", form, ids)
			}
			seen[id] = true
		}
		if form == providers.IDAny && (ids[0] != "toolu_1" || ids[1] != "functions.add:0" || ids[4] != "abcDEF123") || form == providers.IDNine && ids[4] != "abcDEF123" {
			t.Errorf("%s: ids were changed that need not be: %v", form, ids)
		}
		if len(names) != 0 || !proto.Equal(q, before) {
			t.Errorf("%s: the request given was changed, or names were: %v", form, names)
		}
		again, _ := providers.Fit(got, "mine", providers.Info{ToolIDs: form, Structured: true})
		if !proto.Equal(again, got) {
			t.Errorf("%s: fitted twice differs", form)
		}
		// The beginning of a conversation has the same bytes while it grows.
		short, _ := providers.Fit(&messages.CompletionRequest{Messages: q.Messages[:7]}, "mine", providers.Info{ToolIDs: form})
		if some, _ := calls(short); fmt.Sprint(some) != fmt.Sprint(ids[:3]) {
			t.Errorf("%s: ids change as the conversation grows: %v, %v", form, some, ids)
		}
	}
	if _, err := providers.ParseIDForm("odd"); err == nil {
		t.Error("any form of ids is taken")
	}
}

func TestFitNamesAndOrder(t *testing.T) {
	long := strings.Repeat("x", 80)
	tool := func(name string) *messages.ToolDef { return &messages.ToolDef{Name: name, Description: name} }
	q := &messages.CompletionRequest{
		ToolChoice: "tool:web.search",
		Tools:      []*messages.ToolDef{tool("zeta"), tool("web.search"), tool("web_search"), tool(long), tool("2fa"), tool("天气"), tool("alpha"), tool("zeta")},
		Messages:   parse(t, "u(a) a(+1) t(1)"),
	}
	q.Messages[1].Calls[0].Name, q.Messages[2].ToolName = "web.search", "web.search"
	before := proto.Clone(q)
	got, names := providers.Fit(q, "mine", providers.Info{Structured: true})
	var order []string
	for _, d := range got.Tools {
		order = append(order, d.GetName())
		if !legalName.MatchString(d.GetName()) {
			t.Errorf("the name %q is illegal", d.GetName())
		}
		if own := names.Back(d.GetName()); own != d.GetDescription() {
			t.Errorf("%s leads back to %s, not to %s", d.GetName(), own, d.GetDescription())
		}
	}
	if len(order) != 7 {
		t.Errorf("%v", order)
	}
	search := got.Messages[1].Calls[0].GetName()
	if search == "web_search" || names.Back(search) != "web.search" || got.Messages[2].GetToolName() != search || got.ToolChoice != "tool:"+search {
		t.Errorf("call %s, result %s, choice %s", search, got.Messages[2].GetToolName(), got.ToolChoice)
	}
	if !proto.Equal(q, before) {
		t.Error("the request given was changed")
	}
	// Whatever order tools come in, the request has them in one.
	q.Tools[0], q.Tools[6] = q.Tools[6], q.Tools[0]
	again, _ := providers.Fit(q, "mine", providers.Info{Structured: true})
	for i, d := range again.Tools {
		if d.GetName() != order[i] {
			t.Errorf("tool %d is %s, was %s", i, d.GetName(), order[i])
		}
	}
}

func TestFitAsksInWords(t *testing.T) {
	q := &messages.CompletionRequest{Messages: parse(t, "s(x) u(a)"), OutputSchemaJson: []byte(`{"type":"object"}`)}
	got, _ := providers.Fit(q, "mine", providers.Info{})
	if line(got.Messages[:1]) != "s(x)" || !strings.Contains(line(got.Messages[1:2]), `schema, and with nothing else: {"type":"object"}`) || len(got.OutputSchemaJson) != 0 {
		t.Errorf("%s, %s", line(got.Messages), got.OutputSchemaJson)
	}
	got, _ = providers.Fit(q, "mine", providers.Info{Structured: true})
	if len(got.Messages) != 2 || len(got.OutputSchemaJson) == 0 {
		t.Errorf("%s", line(got.Messages))
	}
}

// An answer that was paused has nothing but replay material: it must stay.
func TestRepairKeepsPausedAnswers(t *testing.T) {
	got := providers.Repair(parse(t, "u(a) a(*mine) a(*theirs) u(b)"), "mine")
	if line(got) != "u(a) a(*) u(b)" {
		t.Errorf("%s", line(got))
	}
}
