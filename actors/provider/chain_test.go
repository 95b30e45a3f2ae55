package provider_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"homeagent/actors/kit"
	"homeagent/actors/provider"
	"homeagent/configs"
	"homeagent/messages"
	models "homeagent/providers"
	"homeagent/providers/providertest"
)

// refusal is a step that refuses with an error of the OpenAI form.
func refusal(status int, code, text string, header ...string) providertest.Step {
	s := providertest.Step{Status: status, Body: fmt.Sprintf(`{"error":{"message":%q,"code":%q}}`, text, code), Header: map[string]string{}}
	for i := 0; i < len(header); i += 2 {
		s.Header[header[i]] = header[i+1]
	}
	return s
}

func kinds(done *messages.CompletionDone) string {
	var out []string
	for _, a := range done.GetAttempts() {
		kind := "ok"
		if a.GetFailure() != nil {
			kind = models.KindName(a.GetFailure().GetKind())
		}
		out = append(out, a.GetSource()+" "+kind)
	}
	return strings.Join(out, ", ")
}

func (w *world) states() string {
	w.t.Helper()
	var out []string
	for _, s := range w.ask(&messages.ListSources{ConfiguredOnly: true}).(*messages.SourceList).GetSources() {
		out = append(out, s.GetSpec().GetName()+" "+s.GetState())
	}
	return strings.Join(out, ", ")
}

// codes takes the notices that came so far; the answer to a question that was
// asked after them orders them before it.
func (w *world) codes() []string {
	var out []string
	for {
		select {
		case e := <-w.notices:
			out = append(out, strings.TrimPrefix(e.GetSystem().GetPath(), "providers/source/")+" "+strings.TrimPrefix(e.GetSystem().GetCode(), "source_"))
		default:
			return out
		}
	}
}

// R10: a chain of six sources with one fault each. The list is walked to its end,
// in order, each source for its own model; a fault cools what it is about and
// nothing beside it, though three sources share an address and a key; each fault
// is told with its reason, and each change of standing once.
func TestR10ChainOfSix(t *testing.T) {
	shared := vendor(t,
		providertest.Step{Model: "model-b", Match: "hello", Status: 404, Body: `{"error":{"message":"The model model-b does not exist","code":"model_not_found"}}`},
		func() providertest.Step {
			s := refusal(429, "rate_limit_exceeded", "slow down", "Retry-After", "30")
			s.Model = "model-c"
			return s
		}(),
		providertest.Step{Model: "model-d", Cut: "empty"},
		providertest.Step{Text: []string{"fine"}},
	)
	quota := vendor(t, refusal(429, "insufficient_quota", "You exceeded your current quota"))
	loud := vendor(t, providertest.Step{Error: &providertest.Error{Message: "Overloaded", Type: "overloaded_error"}})
	good := vendor(t, providertest.Step{Text: []string{"from f"}})
	w := newWorld(t, nil, slices.Concat(
		source("a", quota.URL(), "priority", "1", "api_key", "sk-a"),
		source("b", shared.URL(), "priority", "2", "api_key", "sk-one"),
		source("c", shared.URL(), "priority", "3", "api_key", "sk-one"),
		source("d", shared.URL(), "priority", "4", "api_key", "sk-one"),
		source("e", loud.URL(), "priority", "5"),
		source("f", good.URL(), "priority", "6"),
	)...)
	w.complete("t/1/1", "hello")
	done, sent, text := w.done("t/1/1")
	if want := "a quota_exhausted, b model_not_found, c rate_limit, d server, e overloaded, f ok"; kinds(done) != want || text != "from f" {
		t.Fatalf("%s: %q, want %s", kinds(done), text, want)
	}
	for i, s := range sent {
		if want := "model-" + string(rune('a'+i)); s.GetModel() != want || s.GetAttempt() != int32(i+1) {
			t.Errorf("attempt %d asked for %s", s.GetAttempt(), s.GetModel())
		}
	}
	for _, a := range done.GetAttempts()[:5] {
		if f := a.GetFailure().GetError(); f.GetMessage() == "" || f.GetHint() == "" {
			t.Errorf("no reason: %v", a)
		}
	}
	// A model that is missing cools nothing, and neither does one that is limited cool those that share its key.
	if got, want := w.states(), "a cooling, b ready, c cooling, d cooling, e cooling, f ready"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := fmt.Sprint(w.codes()), "[a cooling c cooling d cooling e cooling]"; got != want {
		t.Errorf("notices %s, want %s", got, want)
	}
	// The next turn begins at the top again, with what is ready; the quota is left alone for hours.
	w.complete("t/2/1", "again")
	if done, _, _ = w.done("t/2/1"); kinds(done) != "b ok" {
		t.Errorf("the next turn: %s", kinds(done))
	}
	list := w.ask(&messages.ListSources{ConfiguredOnly: true}).(*messages.SourceList)
	if left := time.Until(time.UnixMicro(list.GetSources()[0].GetCoolingUntilUs())); left < 50*time.Minute {
		t.Errorf("a spent quota is tried again in %v", left)
	}
	if n := len(quota.Requests()); n != 1 {
		t.Errorf("%d requests to the source without quota", n)
	}
	// By hand all is as before.
	w.ask(&messages.ResetSource{Name: "a"})
	if got := w.states(); !strings.HasPrefix(got, "a ready") {
		t.Errorf("after a reset: %s", got)
	}
}

// R10: what was shown is not asked for again elsewhere, so that no tool runs twice.
func TestR10NothingTwice(t *testing.T) {
	tool := []providertest.Tool{{ID: "c1", Name: "pay", Args: []byte(`{"sum":5}`)}}
	a := vendor(t,
		providertest.Step{Match: "cut", Tools: tool, Cut: "args"},
		providertest.Step{Match: "text", Text: []string{"I pay"}, Error: &providertest.Error{Message: "Overloaded", Type: "overloaded_error"}},
	)
	b := vendor(t, providertest.Step{Tools: tool})
	w := newWorld(t, nil, slices.Concat(source("a", a.URL()), source("b", b.URL(), "priority", "1"))...)
	for i, q := range []string{"cut", "text"} {
		w.ask(&messages.ResetSource{Name: "a"})
		id := fmt.Sprintf("t/%d/1", i)
		w.complete(id, q)
		done, _, _ := w.done(id)
		if done.GetResult().GetFailure() == nil || len(done.GetAttempts()) != 1 || len(b.Requests()) != 0 {
			t.Errorf("%s: %s, %d requests elsewhere", q, kinds(done), len(b.Requests()))
		}
		for _, c := range done.GetResult().GetCalls() {
			if c.GetInvalid() == "" {
				t.Errorf("%s: %v could run", q, c)
			}
		}
	}
}

// The keys of one source: used in turn, cooled one by one, rotated without a restart.
func TestKeyPool(t *testing.T) {
	v := vendor(t, providertest.Step{Text: []string{"hi"}})
	w := newWorld(t, nil, source("a", v.URL(), "api_key", "sk-1", "api_keys", "sk-2, sk-3 sk-1")...)
	used := func() (out []string) {
		for _, r := range v.Requests() {
			out = append(out, strings.TrimPrefix(r.Header["Authorization"], "Bearer "))
		}
		return out
	}
	for i := range 4 {
		id := fmt.Sprintf("t/%d/1", i)
		w.complete(id, "hello")
		w.done(id)
	}
	if got := fmt.Sprint(used()); got != "[sk-1 sk-2 sk-3 sk-1]" {
		t.Fatalf("used %s", got)
	}
	v.Load(providertest.Script{Steps: []providertest.Step{
		{Times: 1, Status: 401, Body: `{"error":{"message":"Incorrect API key","code":"invalid_api_key"}}`}, {Text: []string{"hi"}},
	}})
	w.complete("t/5/1", "hello")
	if done, _, _ := w.done("t/5/1"); kinds(done) != "a auth, a ok" {
		t.Errorf("%s", kinds(done))
	}
	s := w.ask(&messages.ListSources{ConfiguredOnly: true}).(*messages.SourceList).GetSources()[0]
	if s.GetState() != "ready" || len(s.GetKeys()) != 3 || s.GetKeys()[1].GetState() != "broken" || s.GetKeys()[1].GetLastFailure() == nil {
		t.Errorf("%v", s)
	}
	if strings.Contains(fmt.Sprint(s), "sk-") {
		t.Errorf("a key is shown: %v", s)
	}
	// The key that was refused is replaced: it is used from the next call on.
	w.change("a.api_keys", "sk-4, sk-3")
	for i := range 3 {
		id := fmt.Sprintf("t/6/%d", i)
		w.complete(id, "hello")
		w.done(id)
	}
	if got := used()[6:]; !slices.Contains(got, "sk-4") || slices.Contains(got, "sk-2") {
		t.Errorf("after the change %v", got)
	}
	// A test asks with each key.
	before := len(v.Requests())
	if r := w.ask(&messages.TestSource{Name: "a"}).(*messages.SourceTested); !r.GetWorks() || len(v.Requests())-before != 3 {
		t.Errorf("%v, %d requests", r, len(v.Requests())-before)
	}
}

// A model that sees looks at a picture for one that does not.
func TestLook(t *testing.T) {
	v := vendor(t, providertest.Step{Text: []string{"a cat on a mat"}, Usage: &providertest.Usage{In: 100, Out: 5}})
	w := newWorld(t, nil, slices.Concat(source("a", v.URL()), source("eye", v.URL(), "priority", "1", "vision", "true", "price_in", "1", "price_out", "1"))...)
	look := func(tool, args string) *messages.ToolResult {
		t.Helper()
		return w.ask(&messages.CallTool{
			Call: &messages.ToolInvocation{CallId: "c1", Name: tool, ArgumentsJson: []byte(args)}, TaskId: "t", Agent: "main", Channel: "cli", Conversation: "k",
		}).(*messages.ToolResult)
	}
	r := look(models.ToolDescribeImage, `{"attachment":"blk_media_1","question":"is it a dog?"}`)
	if r.GetContent() != "a cat on a mat" || r.GetTaint() != messages.Taint_TAINT_FOREIGN {
		t.Errorf("%v", r)
	}
	if body := string(v.Requests()[0].Body); !strings.Contains(body, "model-eye") || !strings.Contains(body, "is it a dog?") || !strings.Contains(body, "data:image/png;base64,") {
		t.Errorf("asked %s", body)
	}
	if r = look(models.ToolOCRImage, `{"attachment":"blk_media_9"}`); r.GetError().GetReason() != "not_found" {
		t.Errorf("%v", r)
	}
	if r = look(models.ToolTranscribeAudio, `{"attachment":"blk_media_1"}`); r.GetError().GetReason() != "failed" {
		t.Errorf("without a source that hears: %v", r)
	}
	u := w.ask(&messages.QueryUsage{By: []string{"source"}}).(*messages.UsageAnswer)
	if len(u.GetRows()) != 1 || u.GetRows()[0].GetSource() != "eye" || u.GetTotal().GetCostMicros() != 105 {
		t.Errorf("%v", u)
	}
	var offered []string
	for _, d := range w.offered().GetTools() {
		offered = append(offered, d.GetName())
	}
	if fmt.Sprint(offered) != "[llm_list_sources llm_set_source describe_image ocr_image]" {
		t.Errorf("offered %v", offered)
	}
}

// offered is the last registration of tools.
func (w *world) offered() (last *messages.RegisterTools) {
	for {
		select {
		case m := <-w.tools:
			if r, ok := m.(*messages.RegisterTools); ok {
				last = r
			}
		default:
			return last
		}
	}
}

// change sets settings by way of config, so that providers hears of it, and waits
// until they are in force.
func (w *world) change(pairs ...string) {
	w.t.Helper()
	set := &messages.ConfigSet{}
	for i := 0; i < len(pairs); i += 2 {
		set.Entries = append(set.Entries, &messages.ConfigEntry{Key: configs.SourcePrefix + pairs[i], Value: &pairs[i+1]})
	}
	r, err := w.rt.Ask(w.ctx, kit.Path("config"), set)
	if err != nil || r.(*messages.ConfigSetResult).GetError() != nil {
		w.t.Fatalf("%v, %v", r, err)
	}
	// It was told of the change before this question, and answers after it has read it.
	w.ask(&messages.UseSource{Name: strings.Split(pairs[0], ".")[0]})
}

// A restart of providers tells the turns at once, and keeps what it knew.
func TestRestart(t *testing.T) {
	a := vendor(t, refusal(429, "insufficient_quota", "no money"))
	b := vendor(t, providertest.Step{Text: []string{"x", "y"}, Hold: providertest.Hold{Middle: "never"}})
	w := newWorld(t, nil, slices.Concat(source("a", a.URL()), source("b", b.URL(), "priority", "1", "max_concurrent", "1"))...)
	w.complete("t/1/1", "hello")
	await(t, b, providertest.Held, 1)
	w.complete("t/2/1", "hello") // waits at b
	w.ask(&messages.ListSources{ConfiguredOnly: true})
	if err := w.rt.Restart(w.ctx, provider.Kind); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"t/1/1", "t/2/1"} {
		done, _, _ := w.done(id)
		if f := done.GetResult().GetFailure(); f.GetKind() != messages.ErrorKind_ERROR_KIND_SERVER || !strings.Contains(f.GetError().GetMessage(), "restarted") {
			t.Errorf("%s: %v", id, done)
		}
	}
	await(t, b, providertest.Closed, 1)
	if got := w.states(); got != "a cooling, b ready" {
		t.Errorf("after the restart: %s", got)
	}
	u := w.ask(&messages.QueryUsage{By: []string{"source"}}).(*messages.UsageAnswer)
	if len(u.GetRows()) != 1 || u.GetRows()[0].GetSource() != "a" || u.GetRows()[0].GetFailed() != 2 && u.GetRows()[0].GetFailed() != 1 {
		t.Errorf("usage after the restart: %v", u)
	}
}

// A source that is removed or renamed with a call under way is asked no more, and
// its call ends as it would have.
func TestRemovedWithACall(t *testing.T) {
	a := vendor(t, providertest.Step{Text: []string{"one ", "two"}, Hold: providertest.Hold{Middle: "go"}})
	b := vendor(t, providertest.Step{Text: []string{"b"}})
	w := newWorld(t, nil, slices.Concat(source("a", a.URL()), source("b", b.URL(), "priority", "1"))...)
	w.complete("t/1/1", "hello")
	await(t, a, providertest.Held, 1)
	if _, ok := w.ask(&messages.RemoveSource{Name: "a"}).(*messages.Ok); !ok {
		t.Fatal("not removed")
	}
	w.complete("t/2/1", "hello")
	if done, _, _ := w.done("t/2/1"); done.GetResult().GetSource() != "b" {
		t.Errorf("a removed source was asked: %v", done)
	}
	a.Open("go")
	if done, _, _ := w.done("t/1/1"); done.GetResult().GetText() != "one two" || done.GetResult().GetFailure() != nil {
		t.Errorf("the call of a removed source: %v", done)
	}
	if _, ok := w.ask(&messages.UseSource{Name: "b"}).(*messages.Ok); !ok {
		t.Error("not used")
	}
}

// The order of sources is a person's to set.
func TestUseSource(t *testing.T) {
	v := vendor(t, providertest.Step{Text: []string{"hi"}})
	w := newWorld(t, nil, slices.Concat(source("a", v.URL()), source("b", v.URL(), "priority", "5"), source("c", v.URL(), "priority", "7", "enabled", "false"))...)
	if _, ok := w.ask(&messages.UseSource{Name: "c"}).(*messages.Ok); !ok {
		t.Fatal("not used")
	}
	if got := w.states(); got != "c ready, a ready, b ready" {
		t.Errorf("%s", got)
	}
	if _, err := w.rt.Ask(w.ctx, kit.Path(provider.Kind), &messages.UseSource{Name: "x"}); kit.Code(err) != "unknown_source" {
		t.Errorf("%v", err)
	}
}

func TestUsage(t *testing.T) {
	v := vendor(t, providertest.Step{Text: []string{"hi"}, Usage: &providertest.Usage{In: 1000, Out: 10}})
	w := newWorld(t, nil, source("a", v.URL(), "price_in", "3", "price_out", "15")...)
	for i, talk := range []string{"x", "x", "y"} {
		req := providertest.Ask("hello")
		req.CallId, req.Agent = fmt.Sprintf("t/%d/1", i), "main"
		w.send(&messages.Complete{Request: req, ReplyTo: kit.Path("turn"), Channel: "cli", Conversation: talk})
		w.done(req.CallId)
	}
	u := w.ask(&messages.QueryUsage{By: []string{"conversation", "agent"}}).(*messages.UsageAnswer)
	if len(u.GetRows()) != 2 || u.GetRows()[0].GetCalls() != 2 || u.GetRows()[0].GetConversation() != "x" || u.GetTotal().GetCostMicros() != 3*3150 || u.GetCurrency() != "USD" {
		t.Errorf("%v", u)
	}
	if _, err := w.rt.Ask(w.ctx, kit.Path(provider.Kind), &messages.QueryUsage{By: []string{"mood"}}); kit.Code(err) != "bad_query" {
		t.Errorf("%v", err)
	}
	if _, err := w.rt.Ask(w.ctx, kit.Path(provider.Kind), &messages.QueryUsage{From: "yesterday"}); kit.Code(err) != "bad_query" {
		t.Errorf("%v", err)
	}
}

// 64 streams at once, half of them cancelled in the middle: afterwards nothing of
// them is left but the connections that are kept for the next.
func TestManyStreams(t *testing.T) {
	const streams, kept, resting = 64, 8, 16
	v := vendor(t, providertest.Step{Text: []string{"one ", "two"}, Hold: providertest.Hold{Middle: "go"}})
	w := newWorld(t, nil, source("a", v.URL(), "max_concurrent", "64")...)
	w.states()
	before := runtime.NumGoroutine()
	heap := uint64(0)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for round := range 3 {
		v.Shut("go")
		for i := range streams {
			w.complete(fmt.Sprintf("t/%d/%d", round, i), "hello")
		}
		await(t, v, providertest.Held, (round+1)*streams)
		for i := 0; i < streams; i += 2 {
			w.send(&messages.CancelCompletion{CallId: fmt.Sprintf("t/%d/%d", round, i), Reason: "stop"})
		}
		await(t, v, providertest.Closed, (round+1)*streams/2)
		v.Open("go")
		for got := 0; got < streams/2; {
			if d, ok := (<-w.in).(*messages.CompletionDone); ok {
				got++
				if d.GetResult().GetText() != "one two" {
					t.Errorf("%v", d)
				}
			}
		}
		s := w.ask(&messages.ListSources{ConfiguredOnly: true}).(*messages.SourceList).GetSources()[0]
		if s.GetActive() != 0 || s.GetFailed() != 0 || s.GetState() != "ready" {
			t.Errorf("round %d: %v", round, s)
		}
		// A kept connection has two goroutines here and one at the server, and some workers rest before they end.
		for deadline := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before+3*kept+resting+2; <-tick.C {
			if time.Now().After(deadline) {
				t.Fatalf("round %d: %d goroutines, %d before", round, runtime.NumGoroutine(), before)
			}
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if round == 0 {
			heap = m.HeapAlloc
		}
		if m.HeapAlloc > heap+4<<20 {
			t.Errorf("round %d: %d bytes, %d after the first", round, m.HeapAlloc, heap)
		}
	}
}
