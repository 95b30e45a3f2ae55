package provider_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/actors/provider"
	"homeagent/configs"
	"homeagent/memory/ledger"
	"homeagent/memory/store"
	"homeagent/memory/usage"
	"homeagent/messages"
	models "homeagent/providers"
	"homeagent/providers/lua"
	"homeagent/providers/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a runtime with providers, a stand-in for config, and a sink that
// plays the turns.
type world struct {
	t        testing.TB
	rt       *kit.Runtime
	registry *configs.Registry
	in       chan proto.Message
	notices  chan *messages.AgentEvent
	tools    chan proto.Message
	ctx      context.Context
}

type sink struct{ in chan proto.Message }

func (s sink) Step(_ time.Time, e kit.Event) []kit.Effect {
	if m, ok := e.Msg.(proto.Message); ok {
		s.in <- m
	}
	return nil
}

// notices plays events for system notices.
type notices struct{ in chan *messages.AgentEvent }

func (n notices) Step(_ time.Time, e kit.Event) []kit.Effect {
	if v, ok := e.Msg.(*messages.AgentEvent); ok && v.GetSystem() != nil {
		n.in <- v
	}
	return nil
}

// books plays ledger on a real store.
type books struct{ engine *ledger.Ledger }

func (b books) Step(now time.Time, e kit.Event) []kit.Effect {
	switch v := e.Msg.(type) {
	case *messages.LedgerStats:
		return []kit.Effect{e.Reply(&messages.LedgerFigures{})}
	case *messages.LedgerExecute:
		if d := b.engine.Execute(now, []*messages.LedgerExecute{v})[0]; d.GetError() != nil {
			return []kit.Effect{e.Reply(d)}
		}
	}
	return nil
}

// settings plays config on a real registry.
type settings struct {
	registry *configs.Registry
	told     []*messages.Address
}

func (s *settings) Step(_ time.Time, e kit.Event) []kit.Effect {
	switch v := e.Msg.(type) {
	case *messages.ConfigSubscribe:
		s.told = append(s.told, e.From)
		return []kit.Effect{e.Reply(&messages.ConfigChanged{})}
	case *messages.ConfigSet:
		var edits []configs.Edit
		for _, n := range v.GetEntries() {
			edits = append(edits, configs.Edit{Key: n.GetKey(), Value: n.GetValue(), Unset: n.Value == nil})
		}
		_, err := s.registry.Set(nil, edits...)
		out := []kit.Effect{e.Reply(&messages.ConfigSetResult{Error: configs.Message(err)})}
		for _, to := range s.told {
			out = append(out, kit.Send{To: to, Msg: &messages.ConfigChanged{}})
		}
		return out
	}
	return nil
}

func newWorld(t testing.TB, locals []models.Local, config ...string) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	w := &world{t: t, in: make(chan proto.Message, 10000), notices: make(chan *messages.AgentEvent, 1000), tools: make(chan proto.Message, 100), ctx: ctx}
	var err error
	w.registry, err = configs.Open(configs.Options{
		Values: configs.NewMapKV(), Secrets: configs.NewMapKV(), Vault: configs.NewVault(filepath.Join(t.TempDir(), "key")),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.set(config...)
	engine, err := lua.New("", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := models.NewClient(models.Options{
		Adapters: engine,
		Media: func(context.Context, *messages.PayloadRef) ([]byte, error) {
			var b bytes.Buffer
			err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 4, 4)))
			return b.Bytes(), err
		},
	})
	w.rt, err = kit.NewRuntime(kit.Config{Node: "test", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open("", store.Options{Reserve: -1, InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	book, err := ledger.Open(db, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(w.rt.Shutdown(ctx), db.Close()); err != nil {
			t.Error(err)
		}
		client.Close()
		engine.Close()
		cancel()
	})
	d := provider.Deps{
		Client: client, Settings: w.registry.Snapshot, Book: provider.NewBook(), Locals: append([]models.Local{}, locals...),
		Payload: func(id string) (*messages.PayloadRef, error) {
			if id != "blk_media_1" {
				return nil, nil
			}
			return &messages.PayloadRef{Id: id, MediaType: "image/png", Size: 9}, nil
		},
		Usage: usage.NewEngine(db), Ledger: kit.Path("ledger"), Tools: kit.Path("tools"),
	}
	w.rt.Register(provider.SourceKind, provider.SourceProps)
	w.rt.Register(provider.CallKind, d.CallProps)
	for name, machine := range map[string]kit.Machine{"config": &settings{registry: w.registry}, "turn": sink{w.in}, "ledger": books{book}, "tools": sink{w.tools}, "events": notices{w.notices}} {
		if _, err := w.rt.SpawnTop(name, kit.Props{Kind: name, New: func() kit.Machine { return machine }}); err != nil {
			t.Fatal(err)
		}
	}
	props := provider.Props(d)
	props.System, props.Restart = false, kit.Restart{Intensity: 5, Period: time.Minute} // a test may restart it
	if _, err := w.rt.SpawnTop(provider.Kind, props); err != nil {
		t.Fatal(err)
	}
	return w
}

// set sets configuration keys: name, value, name, value ...
func (w *world) set(pairs ...string) {
	w.t.Helper()
	var edits []configs.Edit
	for i := 0; i < len(pairs); i += 2 {
		edits = append(edits, configs.Edit{Key: configs.SourcePrefix + pairs[i], Value: pairs[i+1]})
	}
	if len(edits) == 0 {
		return
	}
	if _, err := w.registry.Set(nil, edits...); err != nil {
		w.t.Fatal(err)
	}
}

func source(name, base string, more ...string) []string {
	out := []string{name + ".adapter", "openai", name + ".base_url", base, name + ".model", "model-" + name}
	for i := 0; i < len(more); i += 2 {
		out = append(out, name+"."+more[i], more[i+1])
	}
	return out
}

func vendor(t testing.TB, steps ...providertest.Step) *providertest.Vendor {
	t.Helper()
	v, err := providertest.Start("", providertest.Script{Steps: steps})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

func (w *world) send(m proto.Message) {
	w.t.Helper()
	if err := w.rt.Tell(kit.Path(provider.Kind), m); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) ask(m proto.Message) proto.Message {
	w.t.Helper()
	out, err := w.rt.Ask(w.ctx, kit.Path(provider.Kind), m)
	if err != nil {
		w.t.Fatalf("%T: %v", m, err)
	}
	return out
}

func (w *world) complete(id, text string) {
	w.t.Helper()
	req := providertest.Ask(text)
	req.CallId = id
	w.send(&messages.Complete{Request: req, ReplyTo: kit.Path("turn")})
}

// done collects what the turn is sent until the CompletionDone of a call.
func (w *world) done(id string) (done *messages.CompletionDone, sent []*messages.RequestSent, text string) {
	w.t.Helper()
	for {
		select {
		case m := <-w.in:
			switch v := m.(type) {
			case *messages.RequestSent:
				sent = append(sent, v)
			case *messages.Delta:
				text += v.GetText()
			case *messages.CompletionDone:
				if v.GetCallId() == id {
					return v, sent, text
				}
			}
		case <-w.ctx.Done():
			w.t.Fatalf("no CompletionDone for %s", id)
		}
	}
}

func await(t testing.TB, v *providertest.Vendor, kind string, n int) providertest.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	e, err := v.Await(ctx, kind, n)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestOfflineStandsIn(t *testing.T) {
	w := newWorld(t, nil)
	w.complete("t/1/1", "hello")
	done, sent, text := w.done("t/1/1")
	if !strings.Contains(text, "No model is configured") || done.GetResult().GetText() != text || done.GetResult().GetSource() != "offline" {
		t.Errorf("%q, %v", text, done)
	}
	if len(sent) != 1 || sent[0].GetAttempt() != 1 || sent[0].GetSource() != "offline" || len(sent[0].GetRequestHash()) != 64 {
		t.Errorf("sent %v", sent)
	}
	list := w.ask(&messages.ListSources{}).(*messages.SourceList)
	if len(list.GetSources()) != 1 || list.GetSources()[0].GetState() != "ready" || list.GetSources()[0].GetCalls() != 1 {
		t.Errorf("%v", list)
	}
}

func TestFallbackCooldownAndList(t *testing.T) {
	a := vendor(t, providertest.Step{Status: 429, Body: `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`, Header: map[string]string{"Retry-After": "30"}})
	b := vendor(t, providertest.Step{Text: []string{"from ", "b"}})
	w := newWorld(t, nil, append(source("a", a.URL(), "api_key", "sk-a"), source("b", b.URL(), "priority", "1")...)...)
	w.complete("t/1/1", "hello")
	done, sent, text := w.done("t/1/1")
	if text != "from b" || done.GetResult().GetSource() != "b" || len(done.GetAttempts()) != 2 || done.GetAttempts()[1].GetFailure() != nil {
		t.Errorf("%q %v", text, done)
	}
	if f := done.GetAttempts()[0].GetFailure(); f.GetKind() != messages.ErrorKind_ERROR_KIND_RATE_LIMIT || f.GetError().GetRetryAfterMs() != 30000 {
		t.Errorf("first attempt: %v", f)
	}
	if len(sent) != 2 || sent[1].GetAttempt() != 2 || sent[1].GetModel() != "model-b" {
		t.Errorf("sent %v", sent)
	}
	if body := string(b.Requests()[0].Body); !strings.Contains(body, `"model":"model-b"`) {
		t.Errorf("the fallback was asked for another's model: %s", body)
	}
	w.complete("t/2/1", "again")
	if done, _, _ := w.done("t/2/1"); done.GetResult().GetSource() != "b" || len(a.Requests()) != 1 {
		t.Errorf("a cooling source was asked: %v", done)
	}
	list := w.ask(&messages.ListSources{}).(*messages.SourceList)
	if s := list.GetSources()[0]; s.GetState() != "cooling" || s.GetFailed() != 1 || s.GetActive() != 0 || !s.GetHasKey() || s.GetLastFailure() == nil {
		t.Errorf("%v", s)
	}
	if _, ok := w.ask(&messages.ResetSource{Name: "a"}).(*messages.Ok); !ok {
		t.Error("reset refused")
	}
	w.complete("t/3/1", "again")
	if w.done("t/3/1"); len(a.Requests()) != 2 {
		t.Error("a reset source was not asked")
	}
}

// A cancel closes the socket, before and during the answer, and a queued call
// takes its place.
func TestCancelClosesTheSocket(t *testing.T) {
	v := vendor(t,
		providertest.Step{Match: "hang", Hang: true},
		providertest.Step{Match: "stream", Text: []string{"a", "b"}, Hold: providertest.Hold{Middle: "never"}},
		providertest.Step{Text: []string{"fine"}},
	)
	w := newWorld(t, nil, source("a", v.URL(), "max_concurrent", "1")...)
	w.complete("t/1/1", "hang please")
	await(t, v, providertest.Received, 1)
	w.complete("t/2/1", "stream please")
	start := time.Now()
	w.send(&messages.CancelCompletion{CallId: "t/1/1", Reason: "preempt"})
	closed := await(t, v, providertest.Closed, 1)
	if d := closed.At.Sub(start); d > time.Second {
		t.Errorf("the socket was closed after %v", d)
	}
	await(t, v, providertest.Held, 1)
	w.send(&messages.CancelCompletion{CallId: "t/2/1", Reason: "stop"})
	await(t, v, providertest.Closed, 2)
	w.complete("t/3/1", "hello")
	done, _, text := w.done("t/3/1")
	if !strings.HasSuffix(text, "fine") || done.GetResult().GetFailure() != nil {
		t.Errorf("%q %v", text, done)
	}
	list := w.ask(&messages.ListSources{}).(*messages.SourceList)
	if s := list.GetSources()[0]; s.GetState() != "ready" || s.GetActive() != 0 || s.GetFailed() != 0 {
		t.Errorf("a cancel counted against the source: %v", s)
	}
}

// A stream that was cut after it had shown text is a failure, not an answer,
// and nobody else is asked.
func TestCutStream(t *testing.T) {
	a := vendor(t, providertest.Step{Text: []string{"half an"}, Cut: "event"})
	b := vendor(t, providertest.Step{Text: []string{"other"}})
	w := newWorld(t, nil, append(source("a", a.URL()), source("b", b.URL(), "priority", "1")...)...)
	w.complete("t/1/1", "hello")
	done, _, text := w.done("t/1/1")
	r := done.GetResult()
	if text != "half an" || r.GetText() != text || r.GetFinish() != messages.Finish_FINISH_ERROR || r.GetFailure().GetKind() != messages.ErrorKind_ERROR_KIND_STREAM_TRUNCATED {
		t.Errorf("%q %v", text, done)
	}
	if len(b.Requests()) != 0 {
		t.Error("the second source was asked")
	}
}

func TestAddTestAndRemoveSource(t *testing.T) {
	good := vendor(t, providertest.Step{Text: []string{"ready"}})
	bad := vendor(t, providertest.Step{Status: 401, Body: `{"error":{"message":"Incorrect API key provided: sk-secret","code":"invalid_api_key"}}`})
	w := newWorld(t, []models.Local{{Name: "ollama", Base: good.URL()}})
	spec := func(name, base string) *messages.SourceSpec {
		return &messages.SourceSpec{Name: name, Adapter: "openai", BaseUrl: base, Model: "m", Enabled: true}
	}
	if list := w.ask(&messages.ListSources{}).(*messages.SourceList); len(list.GetFound()) != 1 || list.GetFound()[0].GetModel() != "scripted" {
		t.Errorf("found %v", list.GetFound())
	}
	r := w.ask(&messages.AddSource{Spec: spec("bad", bad.URL()), ApiKey: "sk-secret"}).(*messages.SourceTested)
	if r.GetWorks() || r.GetSaved() || r.GetFailure().GetKind() != messages.ErrorKind_ERROR_KIND_AUTH || strings.Contains(fmt.Sprint(r), "sk-secret") {
		t.Errorf("bad key: %v", r)
	}
	r = w.ask(&messages.AddSource{Spec: spec("Bad Name", good.URL())}).(*messages.SourceTested)
	if r.GetWorks() || r.GetSaved() || r.GetFailure() == nil {
		t.Errorf("bad name: %v", r)
	}
	r = w.ask(&messages.AddSource{Spec: spec("home", good.URL()), ApiKey: "sk-home"}).(*messages.SourceTested)
	if !r.GetWorks() || !r.GetSaved() || r.GetText() != "ready" {
		t.Errorf("good: %v", r)
	}
	if got := w.registry.Snapshot().Secret(configs.SourceKey("home", configs.SourceAPIKey)).Reveal(); got != "sk-home" {
		t.Errorf("kept key %q", got)
	}
	if auth := good.Requests()[0].Header["Authorization"]; auth != "Bearer sk-home" {
		t.Errorf("sent key %q", auth)
	}
	if r := w.ask(&messages.TestSource{Name: "home"}).(*messages.SourceTested); !r.GetWorks() {
		t.Errorf("test: %v", r)
	}
	for _, m := range []proto.Message{&messages.TestSource{Name: "x"}, &messages.RemoveSource{Name: "x"}, &messages.ResetSource{Name: "x"}} {
		if _, err := w.rt.Ask(w.ctx, kit.Path(provider.Kind), m); kit.Code(err) != "unknown_source" {
			t.Errorf("%T of an unknown source: %v", m, err)
		}
	}
	w.complete("t/1/1", "hello")
	if done, _, _ := w.done("t/1/1"); done.GetResult().GetSource() != "home" {
		t.Errorf("%v", done)
	}
	if _, ok := w.ask(&messages.RemoveSource{Name: "home"}).(*messages.Ok); !ok {
		t.Error("remove refused")
	}
	if _, err := w.rt.Ask(w.ctx, kit.Path(provider.Kind), &messages.RemoveSource{Name: "offline"}); kit.Code(err) != "built_in" {
		t.Errorf("what stands in now can be removed: %v", err)
	}
}

func TestUnreachableSource(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + ln.Addr().String() + "/v1"
	_ = ln.Close()
	w := newWorld(t, nil, source("a", base)...)
	w.complete("t/1/1", "hello")
	done, _, _ := w.done("t/1/1")
	if f := done.GetResult().GetFailure(); f.GetKind() != messages.ErrorKind_ERROR_KIND_CONNECT || f.GetError().GetHint() == "" {
		t.Errorf("%v", done)
	}
	w.send(&messages.Complete{Request: &messages.CompletionRequest{CallId: "t/2/1"}, ReplyTo: kit.Path("turn"), DeadlineUs: 1})
	if done, _, _ := w.done("t/2/1"); done.GetResult().GetFailure() == nil {
		t.Errorf("a passed deadline: %v", done)
	}
}
