package provider

import (
	"errors"
	"testing"
	"time"

	"homeagent/actors/kit"
	"homeagent/actors/kit/kittest"
	"homeagent/configs"
	"homeagent/memory/usage"
	"homeagent/messages"
	models "homeagent/providers"
)

var (
	start  = time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
	self   = &messages.Address{Node: "home", Path: "providers", Epoch: 7}
	turn   = &messages.Address{Node: "home", Path: "agents/main/turn/t1", Epoch: 7}
	admin  = &messages.Address{Node: "home", Path: "admin", Epoch: 7}
	config = kit.Path("config")
)

func knownSource(name string, priority int, print string, disabled bool) known {
	return known{
		Spec:  &messages.SourceSpec{Name: name, Adapter: "openai", Model: "m-" + name, Priority: int32(priority), MaxConcurrent: 2, Enabled: !disabled},
		Route: models.Route{Name: name, Priority: priority, Print: print, Disabled: disabled}, HasKey: true,
	}
}

// readOf is what a reading of the settings gives.
func readOf(sources []known) loaded {
	return loaded{Sources: sources, Policy: models.Policy{Retries: 2, MaxWait: 10 * time.Second}, Zone: time.UTC, Currency: "USD", Keep: 24 * time.Hour}
}

// begin gives a machine that knows the sources a and b.
func begin(t *testing.T, name string) *kittest.Script {
	t.Helper()
	s := kittest.New(t, name, New(Params{Config: config}), start)
	s.Step(0, kit.Event{Msg: kit.Started{Self: self}})
	s.Step(0, kit.Event{Msg: readOf([]known{knownSource("a", 0, "1", false), knownSource("b", 1, "1", false)})})
	return s
}

func complete(id string) kit.Event {
	return kit.Event{From: turn, Corr: id, Msg: &messages.Complete{Request: &messages.CompletionRequest{CallId: id}, ReplyTo: turn}}
}

func failedWith(id string, kind messages.ErrorKind, text string) kit.Event {
	r := failure("", kind, "it failed", "")
	r.Text = text
	return kit.Event{Msg: &messages.CompletionDone{CallId: id, Result: r}}
}

func answered(id string) kit.Event {
	return kit.Event{Msg: &messages.CompletionDone{CallId: id, Result: &messages.CompletionResult{Text: "yes", Finish: messages.Finish_FINISH_STOP, Source: "b"}}}
}

func TestFallback(t *testing.T) {
	s := begin(t, "fallback")
	s.Note("a fails, b answers; the turn is told of both attempts")
	s.Step(time.Second, complete("t1/1/1"))
	s.Step(time.Second, failedWith("t1/1/1", messages.ErrorKind_ERROR_KIND_OVERLOADED, ""))
	s.Step(time.Second, answered("t1/1/1"))
	s.Note("a is cooling now, so b is asked first; a late result of a call that has ended changes nothing")
	s.Step(time.Second, complete("t1/2/1"))
	s.Step(0, answered("t1/1/1"))
	s.Step(time.Second, failedWith("t1/2/1", messages.ErrorKind_ERROR_KIND_STREAM_TRUNCATED, "half"))
	s.Note("text had been shown, so nobody else was asked")
	s.Show()
	s.Done()
}

func TestWaitAndDeadline(t *testing.T) {
	s := begin(t, "wait_and_deadline")
	s.Note("only b is to be used; it fails, and a pause is taken before it is asked once more")
	e := complete("t1/1/1")
	e.Msg.(*messages.Complete).Request.Source = "b"
	e.Msg.(*messages.Complete).DeadlineUs = start.Add(time.Minute).UnixMicro()
	s.Step(0, e)
	s.Step(time.Second, failedWith("t1/1/1", messages.ErrorKind_ERROR_KIND_SERVER, ""))
	s.Step(time.Second, kit.Event{Msg: again{"t1/1/1"}})
	s.Note("the deadline passes")
	s.Step(time.Minute, kit.Event{Msg: late{"t1/1/1"}})
	s.Step(0, kit.Event{Msg: again{"t1/1/1"}})
	s.Done()
}

func TestCancel(t *testing.T) {
	s := begin(t, "cancel")
	s.Step(0, complete("t1/1/1"))
	s.Step(time.Second, kit.Event{Msg: &messages.CancelCompletion{CallId: "t1/1/1", Reason: "preempt"}})
	s.Note("a cancel that overtakes its Complete holds")
	s.Step(0, kit.Event{Msg: &messages.CancelCompletion{CallId: "t1/2/1", Reason: "stop"}})
	s.Step(0, complete("t1/2/1"))
	s.Note("a cancel while the request waits")
	s.Step(0, complete("t1/3/1"))
	s.Step(0, failedWith("t1/3/1", messages.ErrorKind_ERROR_KIND_SERVER, ""))
	s.Step(0, failedWith("t1/3/1", messages.ErrorKind_ERROR_KIND_SERVER, ""))
	s.Step(0, kit.Event{Msg: &messages.CancelCompletion{CallId: "t1/3/1", Reason: "stop"}})
	s.Step(0, kit.Event{Msg: again{"t1/3/1"}})
	s.Show()
	s.Done()
}

func TestSourcesComeAndGo(t *testing.T) {
	s := kittest.New(t, "sources_come_and_go", New(Params{Config: config}), start)
	s.Note("a request before the first reading waits for it")
	s.Step(0, kit.Event{Msg: kit.Started{Self: self}})
	s.Step(0, complete("t1/1/1"))
	s.Step(0, kit.Event{Msg: readOf([]known{knownSource("a", 0, "1", false), knownSource("b", 1, "1", false)})})
	s.Note("a change during a reading makes one more reading")
	s.Step(0, kit.Event{Msg: &messages.ConfigChanged{}})
	s.Step(0, kit.Event{Msg: &messages.ConfigChanged{}})
	s.Step(0, kit.Event{Msg: &messages.ConfigChanged{}})
	k := knownSource("b", 1, "2", false)
	k.Spec.MaxConcurrent = 5
	s.Step(0, kit.Event{Msg: readOf([]known{knownSource("a", 0, "1", true), k})})
	s.Note("a was switched off, and its call goes on; with its answer the actor ends")
	s.Step(time.Second, answered("t1/1/1"))
	s.Step(0, kit.Event{Msg: kit.Ended{Who: (&machine{self: self}).address("a"), Name: "source/a"}})
	s.Note("b crashes and is restarted: what it had shown is not known, so that nobody else is asked")
	s.Step(0, complete("t1/2/1"))
	s.Step(0, kit.Event{Msg: kit.Restarted{Who: (&machine{self: self}).address("b"), Name: "source/b", Failure: "boom"}})
	s.Note("a result that it still had on its way comes too late")
	s.Step(0, answered("t1/2/1"))
	s.Note("it ends for good, and stands again for the next request")
	s.Step(0, kit.Event{Msg: kit.Ended{Name: "source/b", Failure: "boom"}})
	s.Step(0, complete("t1/3/1"))
	s.Note("it is waited for when it is removed: nobody is left to ask")
	s.Step(0, failedWith("t1/3/1", messages.ErrorKind_ERROR_KIND_SERVER, ""))
	s.Step(0, kit.Event{Msg: readOf([]known{knownSource("c", 0, "1", true)})})
	s.Step(time.Second, kit.Event{Msg: again{"t1/3/1"}})
	s.Done()
}

// A source that came back while its last call went on stays.
func TestSourceComesBack(t *testing.T) {
	s := begin(t, "source_comes_back")
	s.Step(0, complete("t1/1/1"))
	s.Step(0, kit.Event{Msg: readOf([]known{knownSource("b", 1, "1", false)})})
	s.Step(0, kit.Event{Msg: readOf([]known{knownSource("a", 0, "1", false), knownSource("b", 1, "1", false)})})
	s.Step(0, answered("t1/1/1"))
	s.Done()
}

// What an incarnation was asked and can answer no more is answered by the next.
func TestOrphans(t *testing.T) {
	s := kittest.New(t, "orphans", New(Params{Config: config}), start)
	s.Step(0, kit.Event{Msg: kit.Started{Self: self, Restarts: 1, Failure: "boom"}})
	s.Note("t2 came meanwhile and waits; t1 is gone")
	s.Step(0, complete("t2/1/1"))
	s.Step(0, kit.Event{Msg: orphaned{[]openCall{{CallID: "t1/1/1", To: turn}, {CallID: "t2/1/1", To: turn}}}})
	s.Done()
}

// What is stored is read once ledger has written all; it comes back as it was.
func TestStored(t *testing.T) {
	ledger, tools := kit.Path("ledger"), kit.Path("tools")
	s := kittest.New(t, "stored", New(Params{Config: config, Ledger: ledger, Tools: tools}), start)
	s.Step(0, kit.Event{Msg: kit.Started{Self: self}})
	s.Note("ledger is busy, then has written all")
	s.Step(0, kit.Event{From: ledger, Corr: corrWritten, Msg: &messages.Busy{}})
	s.Step(time.Second, kit.Event{Msg: reload{}})
	s.Step(0, kit.Event{From: ledger, Corr: corrWritten, Msg: &messages.LedgerFigures{}})
	read := readOf([]known{knownSource("a", 0, "1", false), knownSource("b", 1, "1", false)})
	read.Err = errors.New("no disk")
	s.Step(0, kit.Event{Msg: read})
	read.Err = nil
	read.BudgetDay = 1
	read.Stored = &usage.Loaded{
		Rows: []*messages.UsageRow{{Day: "2026-11-01", Source: "a", Model: "m-a", CostMicros: 850_000}},
		Marks: []*messages.SourceMarks{
			{Source: "a", Print: "1", Marks: []*messages.SourceMark{{
				UntilUs: start.Add(time.Minute).UnixMicro(), Strikes: 2, Last: failure("a", messages.ErrorKind_ERROR_KIND_SERVER, "down", "").GetFailure(),
			}}},
			{Source: "gone", Print: "1", Marks: []*messages.SourceMark{{UntilUs: start.Add(time.Minute).UnixMicro()}}},
		},
		Damaged: []string{"d/x"},
	}
	s.Step(time.Second, kit.Event{Msg: read})
	s.Note("nothing is too old; a write that failed is made again as a whole")
	s.Step(0, kit.Event{Msg: swept{}})
	s.Step(0, kit.Event{From: ledger, Corr: corrStore, Msg: &messages.LedgerDone{Error: &messages.Error{Code: "too_big", Message: "no"}}})
	s.Step(time.Second, kit.Event{Msg: restore{}})
	s.Show()
	s.Done()
}

// priced gives a reading in which a costs money and b does not.
func priced(day, month float64) loaded {
	one := 1.0
	a, b := knownSource("a", 0, "1", false), knownSource("b", 1, "1", false)
	a.Price = configs.Price{In: &one, Out: &one}
	b.Route.Free = true
	read := readOf([]known{a, b})
	read.BudgetDay, read.BudgetMonth = day, month
	return read
}

func using(id string, tokens int64) kit.Event {
	e := answered(id)
	e.Msg.(*messages.CompletionDone).Result.Usage = &messages.Usage{Input: tokens, PromptTotal: tokens}
	return e
}

func TestBudget(t *testing.T) {
	s := kittest.New(t, "budget", New(Params{Config: config}), start)
	s.Step(0, kit.Event{Msg: kit.Started{Self: self}})
	s.Step(0, kit.Event{Msg: priced(1, 100)})
	s.Note("four fifths, then all of the day's budget")
	s.Step(0, complete("t1/1/1"))
	s.Step(time.Second, using("t1/1/1", 800_000))
	s.Step(0, complete("t1/2/1"))
	s.Step(time.Second, using("t1/2/1", 200_000))
	background := func(id string) kit.Event {
		e := complete(id)
		e.Msg.(*messages.Complete).Background = true
		return e
	}
	s.Note("a person is served by the usual order, background work by what costs nothing")
	s.Step(0, complete("t1/3/1"))
	s.Step(0, background("t2/1/1"))
	s.Note("without such a source it is refused")
	read := priced(1, 100)
	read.Sources = read.Sources[:1]
	s.Step(0, kit.Event{Msg: read})
	s.Step(0, background("t3/1/1"))
	s.Note("a raised budget lets it through; so does the next day")
	read.BudgetDay = 2
	s.Step(0, kit.Event{Msg: read})
	s.Step(0, background("t4/1/1"))
	read.BudgetDay = 0.5
	s.Step(0, kit.Event{Msg: read})
	s.Step(16*time.Hour, background("t5/1/1"))
	s.Show()
	s.Done()
}

func TestChoice(t *testing.T) {
	s := begin(t, "choice")
	call := func(name, args string) kit.Event {
		return kit.Event{From: kit.Path("tools"), Corr: "c", Msg: &messages.CallTool{
			Call: &messages.ToolInvocation{CallId: "x", Name: name, ArgumentsJson: []byte(args)}, TaskId: "t1", Agent: "main", Channel: "cli", Conversation: "k",
		}}
	}
	ask := func(id, task, conversation string) {
		e := complete(id)
		c := e.Msg.(*messages.Complete)
		c.Request.TaskId, c.Request.Agent, c.Channel, c.Conversation = task, "main", "cli", conversation
		s.Step(0, e)
	}
	s.Step(0, call(toolSet, `{"source":"b"}`))
	ask("t1/1/1", "t1", "k")
	s.Note("for the turn alone: another one of the conversation goes the usual way")
	ask("t2/1/1", "t2", "k")
	s.Note("for the conversation")
	s.Step(0, call(toolSet, `{"source":"b","scope":"conversation"}`))
	ask("t2/2/1", "t2", "k")
	ask("t3/1/1", "t3", "other")
	s.Step(0, call(toolSet, `{"source":"auto"}`))
	ask("t1/2/1", "t1", "k")
	s.Step(0, call(toolSet, `{"source":"nobody"}`))
	s.Step(0, call(toolSet, `{"source":"auto","scope":"conversation"}`))
	s.Step(0, call(toolList, ``))
	s.Done()
}

func TestChoicesAreBounded(t *testing.T) {
	c := make(choices)
	for i := range maxChoices + 5 {
		c.set(start.Add(time.Duration(i)*time.Second), taskScope(time.Duration(i).String()), "a")
	}
	if len(c) != maxChoices || c.of(start.Add(time.Hour), taskScope(time.Duration(0).String())) != "" {
		t.Errorf("%d choices", len(c))
	}
	if got := c.of(start.Add(48*time.Hour), taskScope(time.Duration(maxChoices).String())); got != "" {
		t.Errorf("a choice of two days ago holds: %s", got)
	}
}

func TestRefusals(t *testing.T) {
	s := begin(t, "refusals")
	s.Step(0, kit.Event{From: turn, Corr: "x", Msg: &messages.Complete{}})
	s.Step(0, complete("t1/1/1"))
	s.Step(0, complete("t1/1/1"))
	s.Step(0, kit.Event{From: admin, Corr: "c1", Msg: &messages.TestSource{Name: "nobody"}})
	s.Step(0, kit.Event{From: admin, Corr: "c2", Msg: &messages.RemoveSource{Name: "nobody"}})
	s.Step(0, kit.Event{From: admin, Corr: "c3", Msg: &messages.AddSource{Spec: &messages.SourceSpec{Name: "Ä", Adapter: "openai"}}})
	s.Note("a source's mailbox is full: a failed attempt")
	s.Step(0, kit.Event{Msg: kit.Fault{
		Effect: kit.Send{To: (&machine{self: self}).address("a"), Corr: "1", Msg: complete("t1/1/1").Msg.(*messages.Complete)},
		Err:    &messages.Error{Code: kit.CodeBusy, Message: "the mailbox is full"},
	}})
	s.Done()
}

func TestAddSource(t *testing.T) {
	s := begin(t, "add_source")
	spec := &messages.SourceSpec{Name: "new", Adapter: "openai", BaseUrl: "http://127.0.0.1:1/v1", Model: "m", Enabled: true}
	s.Step(0, kit.Event{From: admin, Corr: "c1", Msg: &messages.AddSource{Spec: spec, ApiKey: "sk-x"}})
	why := try{Ask: ask{admin, "c1"}, Spec: spec, Keep: true}
	s.Note("the test fails: nothing is kept")
	s.Step(0, kit.Event{Msg: tried{why, &messages.SourceTested{Failure: failure("new", messages.ErrorKind_ERROR_KIND_AUTH, "no", "").Failure}}})
	s.Note("the test works: config keeps it; the answer waits for the reading after that")
	s.Step(0, kit.Event{Msg: tried{why, &messages.SourceTested{Works: true, Text: "ready"}}})
	s.Step(0, kit.Event{Corr: "save/1", Msg: &messages.ConfigSetResult{}})
	s.Step(0, kit.Event{Msg: readOf([]known{knownSource("new", 0, "1", false)})})
	s.Note("config refuses")
	s.Step(0, kit.Event{Msg: tried{why, &messages.SourceTested{Works: true, Text: "ready"}}})
	s.Step(0, kit.Event{Corr: "save/2", Msg: &messages.ConfigSetResult{Error: &messages.Error{Code: "bad_value", Message: "no"}}})
	s.Done()
}

func TestSourceMachine(t *testing.T) {
	at := &messages.Address{Node: "home", Path: "providers/source/a", Epoch: 7}
	s := kittest.New(t, "source", NewSource(&messages.SourceSpec{Name: "a", Adapter: "openai", Model: "m", MaxConcurrent: 1}), start)
	s.Step(0, kit.Event{Msg: kit.Started{Self: at}})
	take := func(id, attempt string) {
		e := complete(id)
		e.Corr = attempt
		s.Step(0, e)
	}
	take("t1/1/1", "1")
	s.Note("one may be open: the others wait in order")
	take("t2/1/1", "1")
	take("t3/1/1", "2")
	s.Note("a waiting one is cancelled, then the open one; the next opens")
	s.Step(0, kit.Event{Msg: &messages.CancelCompletion{CallId: "t2/1/1"}})
	s.Step(0, kit.Event{Msg: &messages.CancelCompletion{CallId: "t1/1/1"}})
	s.Note("what comes of a cancelled call is dropped")
	s.Step(0, kit.Event{Msg: &messages.CompletionDone{CallId: "t1/1/1"}})
	s.Step(0, kit.Event{Msg: kit.Ended{Name: "call/t1-1-1.1"}})
	s.Step(0, answered("t3/1/1"))
	s.Step(0, kit.Event{Msg: kit.Ended{Name: "call/t3-1-1.2"}})
	s.Note("a cancel before its Complete, a crash, a spawn that fails, more room")
	s.Step(0, kit.Event{Msg: &messages.CancelCompletion{CallId: "t4/1/1"}})
	take("t4/1/1", "1")
	take("t5/1/1", "1")
	s.Step(0, kit.Event{Msg: kit.Ended{Name: "call/t5-1-1.1", Failure: "boom"}})
	take("t6/1/1", "1")
	s.Step(0, kit.Event{Msg: kit.Fault{Effect: kit.Spawn{Kind: CallKind, Name: "call/t6-1-1.1"}, Err: &messages.Error{Code: kit.CodeNameTaken, Message: "taken"}}})
	take("t7/1/1", "1")
	take("t8/1/1", "1")
	s.Step(0, kit.Event{Msg: &messages.SourceSpec{Name: "a", Adapter: "openai", Model: "m", MaxConcurrent: 2}})
	s.Show()
	s.Done()
}

func TestCallMachine(t *testing.T) {
	at := &messages.Address{Node: "home", Path: "providers/source/a/call/t1-1-1.2", Epoch: 7}
	c := complete("t1/1/1").Msg.(*messages.Complete)
	for name, more := range map[string]func(*kittest.Script){
		"call_finishes": func(s *kittest.Script) {
			s.Step(0, kit.Event{Msg: finished{&messages.CompletionResult{Text: "hi", Finish: messages.Finish_FINISH_STOP}}})
		},
		"call_cancelled": func(s *kittest.Script) { s.Step(0, kit.Event{Msg: &messages.CancelCompletion{CallId: "t1/1/1"}}) },
		"call_turn_gone": func(s *kittest.Script) {
			send := kit.Send{To: c.GetReplyTo(), Msg: &messages.Delta{}}
			s.Note("a busy turn only misses a piece")
			s.Step(0, kit.Event{Msg: kit.Fault{Effect: send, Err: &messages.Error{Code: kit.CodeBusy}}})
			s.Step(0, kit.Event{Msg: kit.Fault{Effect: send, Err: &messages.Error{Code: kit.CodeGone}}})
			s.Step(0, kit.Event{Msg: kit.Fault{Effect: send, Err: &messages.Error{Code: kit.CodeGone}}})
		},
	} {
		s := kittest.New(t, name, NewCall(c), start)
		s.Step(0, kit.Event{Msg: kit.Started{Self: at}})
		s.Step(0, kit.Event{Msg: sent{&messages.RequestSent{CallId: "t1/1/1", Model: "m", Attempt: 2}}})
		s.Step(0, kit.Event{Msg: &messages.Delta{CallId: "t1/1/1", Text: "h"}})
		more(s)
		s.Done()
	}
}

// A full source refuses, and forgotten cancels make room for new ones.
func TestBounds(t *testing.T) {
	m := NewSource(&messages.SourceSpec{Name: "a", MaxConcurrent: 1}).(*source)
	m.Step(start, kit.Event{Msg: kit.Started{Self: self}})
	var last []kit.Effect
	for i := range maxQueue + 2 {
		last = m.Step(start, complete(string(rune('a'+i%26))+time.Duration(i).String()))
	}
	send, ok := last[0].(kit.Send)
	if !ok || send.Msg.(*messages.CompletionDone).GetResult().GetFailure().GetKind() != messages.ErrorKind_ERROR_KIND_OVERLOADED {
		t.Errorf("a full queue gives %v", last)
	}
	for i := range 2 * maxCancelled {
		m.Step(start, kit.Event{Msg: &messages.CancelCompletion{CallId: time.Duration(i).String()}})
	}
	if len(m.early.ids) != maxCancelled {
		t.Errorf("%d cancels are remembered", len(m.early.ids))
	}
}
