package channels

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"homeagent/actors/kit"
	"homeagent/actors/kit/kittest"
	"homeagent/configs"
	"homeagent/messages"
)

func beginTools(t *testing.T, name string) *kittest.Script {
	s := kittest.New(t, name, New(Params{Ledger: kit.Path("ledger"), Tools: kit.Path("tools"), MaxText: 64}), start)
	s.Step(0, kit.Event{Msg: kit.Started{Self: kit.Path("channels")}})
	s.Step(0, kit.Event{Corr: "tools", Msg: &messages.Ok{}})
	s.Step(0, kit.Event{From: admin, Corr: "r1", Msg: &messages.RegisterChannel{Name: "cli", Kind: messages.ChannelKind_CHANNEL_KIND_INTERACTIVE}})
	s.Step(0, kit.Event{From: owner, Corr: "r2", Msg: &messages.RegisterChannel{Name: "mail", Owner: owner}})
	s.Step(0, kit.Event{From: owner, Corr: "r3", Msg: &messages.RegisterChannel{Name: "chat", Owner: owner, Idempotent: true}})
	s.Step(0, kit.Event{From: kit.Path("agents"), Corr: "r4", Msg: &messages.RegisterChannel{Name: "agents", Owner: kit.Path("agents")}})
	return s
}

func sendCall(id string, args map[string]any) kit.Event {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	task, _, _ := strings.Cut(id, "/")
	return kit.Event{From: kit.Path("tools"), Corr: "call/" + id, Msg: &messages.CallTool{
		Call: &messages.ToolInvocation{CallId: id, Name: toolSend, ArgumentsJson: b}, TaskId: task, Agent: "main", Channel: "cli", Conversation: "home",
	}}
}

type args = map[string]any

func done(corr string, r *messages.LedgerResult) kit.Event {
	return kit.Event{Corr: corr, Msg: &messages.LedgerDone{Results: []*messages.LedgerResult{r}}}
}

func TestSends(t *testing.T) {
	s := beginTools(t, "sends")
	s.Note("over a channel with an owner: intent, send, receipt, result")
	s.Step(0, sendCall("t1/1", args{"channel": "mail", "text": "hi"}))
	s.Step(0, done("intend/t1/1", &messages.LedgerResult{}))
	s.Step(0, kit.Event{From: owner, Corr: "out/t1/1/send", Msg: &messages.OutputSent{Receipt: &messages.OutputReceipt{Receipt: "m-1"}}})
	s.Step(0, done("note/t1/1", &messages.LedgerResult{}))
	s.Note("over one without: the conversation is that of the turn")
	s.Step(0, sendCall("t1/2", args{"channel": "cli", "text": "hi"}))
	s.Step(0, done("intend/t1/2", &messages.LedgerResult{}))
	s.Step(0, done("note/t1/2", &messages.LedgerResult{}))
	s.Note("the same again, also as the answer of the turn")
	s.Step(0, sendCall("t1/3", args{"channel": "mail", "text": " hi\n"}))
	answer := &messages.OutputIntent{OutputId: "t1/o1", TaskId: "t1", Channel: "mail", Parts: []*messages.Part{{Content: &messages.Part_Text{Text: "hi"}}}}
	s.Step(0, kit.Event{From: kit.Path("agents/main/turn/t1"), Corr: "a", Msg: &messages.SendOutput{Output: answer}})
	s.Note("the owner refuses, and says nothing; what was not sent may be sent again")
	s.Step(0, sendCall("t1/4", args{"channel": "mail", "conversation": "lena", "text": "hi"}))
	s.Step(0, done("intend/t1/4", &messages.LedgerResult{}))
	s.Step(0, kit.Event{From: owner, Corr: "out/t1/4/send", Msg: &messages.OutputSent{Error: &messages.Error{Code: "no_route", Message: "There is no such address.", Hint: "Check it."}}})
	s.Step(0, done("note/t1/4", &messages.LedgerResult{}))
	s.Step(0, sendCall("t1/5", args{"channel": "mail", "conversation": "lena", "text": "hi"}))
	s.Step(0, done("intend/t1/5", &messages.LedgerResult{}))
	s.Step(time.Minute, kit.Event{Msg: sendLate{"t1/5/send"}})
	s.Step(0, kit.Event{Corr: "note/t1/5", Msg: &messages.LedgerDone{Error: &messages.Error{Code: "disk_low", Message: "The disk is full."}}})
	s.Step(0, sendCall("t1/6", args{"channel": "mail", "conversation": "lena", "text": "hi"}))
	s.Note("nothing can be written")
	s.Step(0, sendCall("t1/7", args{"channel": "mail", "text": "ho"}))
	s.Step(0, kit.Event{Corr: "intend/t1/7", Msg: &messages.LedgerDone{Error: &messages.Error{Code: "disk_low", Message: "The disk is full."}}})
	s.Step(0, sendCall("t1/8", args{"channel": "mail", "text": "ho"}))
	s.Step(0, kit.Event{Msg: kit.Fault{Effect: kit.Send{Corr: "intend/t1/8"}, Err: &messages.Error{Code: "actor_gone", Message: "The ledger is gone."}}})
	s.Note("a cancel changes nothing once something was done")
	s.Step(0, sendCall("t1/9", args{"channel": "mail", "text": "last"}))
	s.Step(0, kit.Event{From: kit.Path("tools"), Msg: &messages.CancelTool{CallId: "t1/9"}})
	s.Step(0, done("intend/t1/9", &messages.LedgerResult{}))
	s.Show()
	s.Done()
}

func TestSendRefusals(t *testing.T) {
	s := beginTools(t, "send_refusals")
	s.Note("all owners have had their time to register")
	s.Step(channelWait, kit.Event{Corr: "tools", Msg: &messages.Ok{}})
	for i, a := range []args{
		{"channel": "fax", "text": "hi"},
		{"channel": "agents", "text": "hi"},
		{"channel": "", "text": "hi"},
		{"channel": "cli", "text": " "},
		{"channel": "cli", "text": strings.Repeat("x", 65)},
		{"channel": "cli", "text": "x", "conversation": "a\nb"},
		{"channel": 5},
		{"chanel": "cli"},
	} {
		s.Step(0, sendCall(fmt.Sprint("t1/", i), a))
	}
	s.Note("tools is away, then takes the tools")
	s.Step(0, kit.Event{Msg: kit.Fault{Effect: kit.Send{Corr: "tools"}, Err: &messages.Error{Code: "actor_gone"}}})
	s.Step(time.Second, kit.Event{Msg: toolsLate{}})
	s.Done()
}

// TestToolsAfterTheChannels registers the tools when the channels are there that a node always has, or do not come.
func TestToolsAfterTheChannels(t *testing.T) {
	s := kittest.New(t, "send_awaited", New(Params{Ledger: kit.Path("ledger"), Tools: kit.Path("tools"), Awaited: []string{"cli", "web"}}), start)
	s.Step(0, kit.Event{Msg: kit.Started{Self: kit.Path("channels")}})
	s.Step(0, kit.Event{From: admin, Corr: "r1", Msg: &messages.RegisterChannel{Name: "cli"}})
	s.Step(0, kit.Event{From: admin, Corr: "r2", Msg: &messages.RegisterChannel{Name: "web"}})
	s.Step(0, kit.Event{From: admin, Corr: "r3", Msg: &messages.RegisterChannel{Name: "fax"}})
	s.Note("another start, and one does not come")
	s.Step(0, kit.Event{Msg: kit.Started{Self: kit.Path("channels"), Restarts: 1}})
	s.Step(channelWait, kit.Event{Msg: toolsLate{}})
	s.Done()
}

// TestSendBeforeTheChannel has turns go on before all owners have registered: a send waits for its channel, for a while.
func TestSendBeforeTheChannel(t *testing.T) {
	s := beginTools(t, "send_early")
	s.Step(0, sendCall("t1/1", args{"channel": "web", "text": "hi"}))
	s.Step(0, sendCall("t1/2", args{"channel": "fax", "text": "hi"}))
	s.Step(0, sendCall("t1/3", args{"channel": "telex", "text": "hi"}))
	s.Step(0, kit.Event{From: admin, Corr: "r9", Msg: &messages.RegisterChannel{Name: "web", Kind: messages.ChannelKind_CHANNEL_KIND_INTERACTIVE}})
	s.Step(0, done("intend/t1/1", &messages.LedgerResult{}))
	s.Step(0, kit.Event{From: kit.Path("tools"), Msg: &messages.CancelTool{CallId: "t1/3"}})
	s.Note("no fax comes")
	s.Step(channelWait, kit.Event{Msg: comeLate{"t1/2"}})
	s.Done()
}

// TestSendAfterRestart makes a call again of which an earlier process had written something.
func TestSendAfterRestart(t *testing.T) {
	s := beginTools(t, "send_again")
	s.Note("it was sent")
	s.Step(0, sendCall("t1/1", args{"channel": "mail", "text": "one"}))
	s.Step(0, done("intend/t1/1", &messages.LedgerResult{Known: true, Receipt: &messages.OutputReceipt{OutputId: "t1/1/send"}}))
	s.Note("it was given up")
	s.Step(0, sendCall("t1/2", args{"channel": "mail", "text": "two"}))
	s.Step(0, done("intend/t1/2", &messages.LedgerResult{Known: true, Receipt: &messages.OutputReceipt{
		OutputId: "t1/2/send", Error: &messages.Error{Code: "no_route", Message: "There is no such address."},
	}}))
	s.Note("nobody knows: a channel that tells repeats apart gets it again, another does not")
	s.Step(0, sendCall("t1/3", args{"channel": "chat", "text": "three"}))
	s.Step(0, done("intend/t1/3", &messages.LedgerResult{Known: true}))
	s.Step(0, sendCall("t1/4", args{"channel": "mail", "text": "four"}))
	s.Step(0, done("intend/t1/4", &messages.LedgerResult{Known: true}))
	s.Step(0, done("note/t1/4", &messages.LedgerResult{}))
	s.Note("the turn was made again while a call is on its way: one send, one result")
	s.Step(0, sendCall("t1/5", args{"channel": "chat", "text": "five"}))
	again := sendCall("t1/5", args{"channel": "chat", "text": "five"})
	again.Corr = "call/second"
	s.Step(0, again)
	s.Step(0, done("intend/t1/5", &messages.LedgerResult{}))
	s.Step(0, kit.Event{From: owner, Corr: "out/t1/5/send", Msg: &messages.OutputSent{}})
	s.Step(0, done("note/t1/5", &messages.LedgerResult{}))
	s.Done()
}

func TestSendOfResident(t *testing.T) {
	s := beginTools(t, "send_resident")
	const cook = "main/resident/cook"
	may := func(id string, allowed ...string) kit.Event {
		return kit.Event{Corr: "may/" + id, Msg: &messages.AgentList{Agents: []*messages.AgentView{{Spec: &messages.AgentSpec{Agent: cook, AllowedOutputs: allowed}}}}}
	}
	call := func(id string, a args) kit.Event {
		e := sendCall(id, a)
		e.Msg.(*messages.CallTool).Agent = cook
		return e
	}
	s.Step(0, call("t1/1", args{"channel": "mail", "text": "hi"}))
	s.Step(0, may("t1/1", "mail"))
	s.Step(0, call("t1/2", args{"channel": "cli", "text": "hi"}))
	s.Step(0, may("t1/2", "mail"))
	s.Step(0, call("t1/3", args{"channel": "cli", "text": "hi"}))
	s.Step(0, may("t1/3"))
	s.Note("it does not say, is away, is another one, is cancelled")
	s.Step(0, call("t1/4", args{"channel": "cli", "text": "ho"}))
	s.Step(mayWait, kit.Event{Msg: mayLate{"t1/4"}})
	s.Step(0, call("t1/5", args{"channel": "cli", "text": "ho"}))
	s.Step(0, kit.Event{Msg: kit.Fault{Effect: kit.Send{Corr: "may/t1/5"}, Err: &messages.Error{Code: "actor_gone"}}})
	s.Step(0, call("t1/6", args{"channel": "cli", "text": "ho"}))
	s.Step(0, kit.Event{Corr: "may/t1/6", Msg: &messages.AgentList{}})
	s.Step(0, call("t1/7", args{"channel": "cli", "text": "ho"}))
	s.Step(0, kit.Event{From: kit.Path("tools"), Msg: &messages.CancelTool{CallId: "t1/7"}})
	s.Step(0, may("t1/7"))
	s.Note("the list, for it and for the main agent")
	list := call("t1/8", nil)
	list.Msg.(*messages.CallTool).Call = &messages.ToolInvocation{CallId: "t1/8", Name: toolList}
	s.Step(0, list)
	s.Step(0, may("t1/8", "mail", "gone"))
	list = sendCall("t2/1", nil)
	list.Msg.(*messages.CallTool).Call = &messages.ToolInvocation{CallId: "t2/1", Name: toolList}
	s.Step(0, list)
	s.Done()
}

// TestSendCap has a turn that sends without end.
func TestSendCap(t *testing.T) {
	m := New(Params{Ledger: kit.Path("ledger")})
	m.Step(start, kit.Event{From: admin, Msg: &messages.RegisterChannel{Name: "cli"}})
	m.Step(start, kit.Event{Msg: &messages.ConfigChanged{Values: []*messages.ConfigValue{{Key: configs.KeyToolsSends, Value: "3"}}}})
	ok, denied := 0, 0
	for i := range 80 {
		id := fmt.Sprint("t1/", i)
		out := m.Step(start, sendCall(id, args{"channel": "cli", "text": fmt.Sprint("message ", i)}))
		out = append(out, m.Step(start, done("intend/"+id, &messages.LedgerResult{}))...)
		out = append(out, m.Step(start, done("note/"+id, &messages.LedgerResult{}))...)
		for _, e := range out {
			if r, is := e.(kit.Reply); is {
				res := r.Msg.(*messages.ToolResult)
				switch {
				case res.GetContent() == "ok":
					ok++
				case res.GetError().GetReason() == "denied" && strings.Contains(res.GetError().GetDetail(), "3 messages"):
					denied++
				default:
					t.Errorf("%v", res)
				}
			}
		}
	}
	if ok != 3 || denied != 77 {
		t.Errorf("%d were sent, %d denied", ok, denied)
	}
	for i := range 1000 {
		m.Step(start, sendCall(fmt.Sprint("u", i, "/1"), args{"channel": "cli", "text": "x"}))
		m.Step(start, done(fmt.Sprint("intend/u", i, "/1"), &messages.LedgerResult{}))
		m.Step(start, done(fmt.Sprint("note/u", i, "/1"), &messages.LedgerResult{}))
	}
	if n := len(m.(*state).tool.turns); n > maxTurns {
		t.Errorf("%d turns are remembered", n)
	}
}
