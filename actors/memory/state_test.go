package memory

import (
	"errors"
	"strings"
	"testing"
	"time"

	"homeagent/actors/kit"
	"homeagent/actors/kit/kittest"
	"homeagent/memory/recall"
	"homeagent/messages"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newMachine() kit.Machine {
	return New(Params{Tools: kit.Path("tools"), Graph: kit.Path("memory/graph"), Words: true})
}

func begin(t *testing.T, name string) *kittest.Script {
	t.Helper()
	s := kittest.New(t, name, newMachine(), start)
	s.Step(0, kit.Event{Msg: kit.Started{Self: kit.Path("memory")}})
	return s
}

func call(id, name, args string) kit.Event {
	return kit.Event{From: kit.Path("tools"), Corr: "t/" + id, Msg: &messages.CallTool{
		TaskId: "task", Agent: "main", Call: &messages.ToolInvocation{CallId: id, Name: name, ArgumentsJson: []byte(args)},
	}}
}

func item(id, text string) *messages.RecalledItem {
	return &messages.RecalledItem{Id: id, Text: text, AtUs: start.UnixMicro(), Via: "lexical", Score: 0.87654, Speaker: "user"}
}

func TestRecall(t *testing.T) {
	s := begin(t, "recall")
	ask := func(text string) kit.Event {
		return kit.Event{From: kit.Path("agents/main/turn/x"), Corr: "r", Msg: &messages.Recall{
			Text: text, Agent: "main", Limit: 12, Exclude: []string{"E9"}, NowUs: start.UnixMicro(),
		}}
	}
	s.Step(0, ask("the key"))
	s.Step(time.Millisecond, kit.Event{Msg: found{Job: 1, Answer: recall.Answer{Items: []*messages.RecalledItem{item("E1", "the key is under the fern")}}}})
	s.Note("the asker has one before it")
	s.Step(0, ask("the bag"))
	s.Step(0, kit.Event{Msg: found{Job: 2, Answer: recall.Answer{
		Items: []*messages.RecalledItem{item("E1", "the red bag")}, Known: []*messages.RecalledItem{item("E9", "the blue bag")},
	}}})
	s.Note("memory has none")
	s.Step(0, ask("the hat"))
	s.Step(0, kit.Event{Msg: found{Job: 3, Answer: recall.Answer{None: true}}})
	s.Note("the store fails")
	s.Step(0, ask("the cat"))
	s.Step(0, kit.Event{Msg: found{Job: 4, Err: errors.New("disk")}})
	s.Show()
	s.Done()
}

func TestDictionary(t *testing.T) {
	s := begin(t, "dictionary")
	ask := kit.Event{From: kit.Path("x"), Corr: "r", Msg: &messages.Recall{Text: "我的猫"}}
	s.Step(0, ask)
	s.Note("it is on its way: not asked for twice")
	s.Step(0, ask)
	s.Step(0, kit.Event{Msg: wordsLoaded{}})
	s.Step(wordsIdle, kit.Event{Msg: tick{}})
	s.Note("used meanwhile")
	s.Step(0, kit.Event{Msg: wordsChecked{}})
	s.Step(wordsIdle, kit.Event{Msg: tick{}})
	s.Step(0, kit.Event{Msg: wordsChecked{Dropped: true}})
	s.Note("wanted again, and cannot be loaded")
	s.Step(0, ask)
	s.Step(0, kit.Event{Msg: wordsLoaded{Err: errors.New("bad file")}})
	s.Step(0, ask)
	s.Done()
}

func TestVisitsAreBounded(t *testing.T) {
	s := begin(t, "bounded")
	for range maxVisits + 2 {
		s.Step(0, kit.Event{From: kit.Path("admin"), Corr: "q", Msg: &messages.MemoryQuery{Entity: "Ann"}})
	}
	s.Note("one answer lets the next one in")
	s.Step(0, kit.Event{Msg: browsed{Job: 2, Answer: &messages.MemoryAnswer{Facts: []*messages.Fact{{Subject: "Ann"}}}}})
	s.Step(0, kit.Event{Msg: browsed{Job: 1, Err: errors.New("disk")}})
	s.Show()
	s.Done()
}

func TestTools(t *testing.T) {
	s := begin(t, "tools")
	s.Note("the registry is not there yet")
	s.Step(0, kit.Event{Msg: kit.Fault{Effect: kit.Send{Corr: corrRegister}, Err: &messages.Error{Code: "gone"}}})
	s.Step(registerAgain, kit.Event{Msg: register{}})
	s.Step(0, kit.Event{Corr: corrRegister, Msg: &messages.Ok{}})
	s.Note("search")
	s.Step(0, call("c1", toolRecall, `{"query":"key","keywords":["fern"],"limit":3}`))
	s.Step(0, kit.Event{Msg: found{Job: 1, Answer: recall.Answer{Items: []*messages.RecalledItem{item("E1", "the key is under the fern")}}}})
	s.Step(0, call("c2", toolRecall, `{"query":"what did I tell you"}`))
	s.Step(0, kit.Event{Msg: found{Job: 2}})
	s.Note("commit: two stored, one known, one closed")
	s.Step(0, call("c3", toolCommit, `{"facts":[{"subject":"Ann","predicate":"lives in","object":"Paris","functional":true,"valid_from":"2025-05-02"},{"subject":"user","predicate":"喜欢","object":"茶","confidence":0.8},{"subject":"a","predicate":"b","object":"c"}]}`))
	s.Step(time.Second, kit.Event{From: kit.Path("memory/graph"), Corr: corrCommit + "3", Msg: &messages.CommitFactsResult{
		FactIds: []string{"c3/f0", "c3/f1", "old/f0"}, Closed: []string{"old/f7"},
	}})
	s.Note("the graph refuses")
	s.Step(0, call("c4", toolCommit, `{"facts":[{"subject":"a","predicate":"b","object":"c"}]}`))
	s.Step(0, kit.Event{Corr: corrCommit + "4", Msg: &messages.CommitFactsResult{Error: &messages.Error{Code: "disk_low", Message: "Facts could not be stored.", Hint: "Again."}}})
	s.Note("the graph cannot be reached")
	s.Step(0, call("c5", toolCommit, `{"facts":[{"subject":"a","predicate":"b","object":"c"}]}`))
	s.Step(0, kit.Event{Msg: kit.Fault{Effect: kit.Send{Corr: corrCommit + "5"}, Err: &messages.Error{Code: "gone", Message: "No such actor."}}})
	s.Note("the graph does not answer, then does: the late answer changes nothing")
	s.Step(0, call("c6", toolCommit, `{"facts":[{"subject":"a","predicate":"b","object":"c"}]}`))
	s.Step(graphLimit, kit.Event{Msg: late{6}})
	s.Step(0, kit.Event{Corr: corrCommit + "6", Msg: &messages.CommitFactsResult{FactIds: []string{"c6/f0"}}})
	s.Show()
	s.Done()
}

func TestCancel(t *testing.T) {
	s := begin(t, "cancel")
	cancel := func(id string) kit.Event {
		return kit.Event{From: kit.Path("tools"), Msg: &messages.CancelTool{CallId: id, Reason: "preempt"}}
	}
	for _, id := range []string{"a", "b", "c", "d", "waits"} {
		s.Step(0, call(id, toolRecall, `{"query":"fern"}`))
	}
	s.Note("one with the engine, whose place goes to the one that waits")
	s.Step(0, cancel("a"))
	s.Step(0, call("late", toolRecall, `{"query":"fern"}`))
	s.Note("one that waits")
	s.Step(0, cancel("late"))
	s.Note("one with the graph")
	s.Step(0, call("commit", toolCommit, `{"facts":[{"subject":"a","predicate":"b","object":"c"}]}`))
	s.Step(0, cancel("commit"))
	s.Note("none of ours")
	s.Step(0, cancel("other"))
	s.Show()
	s.Done()
}

func TestBadArguments(t *testing.T) {
	m := newMachine()
	m.Step(start, kit.Event{Msg: kit.Started{Self: kit.Path("memory")}})
	for _, c := range []struct{ tool, args, reason, field string }{
		{toolRecall, ``, "required", "query"},
		{toolRecall, `not json`, "type", ""},
		{toolRecall, `[]`, "type", ""},
		{toolRecall, `{"query":7}`, "type", "query"},
		{toolRecall, `{"question":"x"}`, "type", "question"},
		{toolRecall, `{"query":"x","limit":5000}`, "type", "limit"},
		{toolCommit, `{}`, "required", "facts"},
		{toolCommit, `{"facts":"x"}`, "type", "facts"},
		{toolCommit, `{"facts":[{"subject":"a","predicate":" ","object":"c"}]}`, "required", "facts[0].predicate"},
		{toolCommit, `{"facts":[{"subject":"a","predicate":"b","object":"c","confidence":2}]}`, "type", "facts[0].confidence"},
		{toolCommit, `{"facts":[{"subject":"a","predicate":"b","object":"c","valid_from":"soon"}]}`, "type", "facts[0].valid_from"},
		{toolCommit, `{"facts":[{"subject":"a","predicate":"b","object":"c","valid_to":"1999"}]}`, "type", "facts[0].valid_to"},
		{toolCommit, `{"facts":[` + strings.Repeat(`{"subject":"a","predicate":"b","object":"c"},`, maxFacts) + `{"subject":"a","predicate":"b","object":"c"}]}`, "required", "facts"},
		{"memory_guess", `{}`, "not_found", ""},
	} {
		effects := m.Step(start, call("x", c.tool, c.args))
		if len(effects) != 1 {
			t.Errorf("%s %s: %d effects", c.tool, c.args, len(effects))
			continue
		}
		reply, ok := effects[0].(kit.Reply)
		if !ok {
			t.Errorf("%s %s: %T", c.tool, c.args, effects[0])
			continue
		}
		r := reply.Msg.(*messages.ToolResult)
		if e := r.GetError(); e.GetReason() != c.reason || e.GetField() != c.field || e.GetDetail() == "" || r.GetContent() != "" || r.GetCallId() != "x" {
			t.Errorf("%s %s: %v", c.tool, c.args, r)
		}
	}
}

func FuzzArguments(f *testing.F) {
	f.Add(`{"facts":[{"subject":"a","predicate":"b","object":"c","valid_from":"2020"}]}`)
	f.Add(`{"query":"x"}`)
	f.Fuzz(func(t *testing.T, args string) {
		for _, tool := range []string{toolRecall, toolCommit} {
			c := call("x", tool, args).Msg.(*messages.CallTool)
			if b, err := batch(c, start); (b == nil) == (err == nil) {
				t.Fatalf("batch %v, %v", b, err)
			}
			if q, err := question(c, start); err == nil && q.Text == "" {
				t.Fatal("a question without a text")
			}
		}
	})
}
