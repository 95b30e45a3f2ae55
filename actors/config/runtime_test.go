package config

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// follower subscribes at its start and hands on what it is told.
type follower struct{ told chan *messages.ConfigChanged }

func (f *follower) Step(_ time.Time, e kit.Event) []kit.Effect {
	switch m := e.Msg.(type) {
	case kit.Started:
		return []kit.Effect{kit.Send{To: kit.Path("config"), Msg: &messages.ConfigSubscribe{Prefixes: []string{"core.agent."}}, Corr: "s"}}
	case *messages.ConfigChanged:
		f.told <- m
	}
	return nil
}

// node runs config in a real runtime.
func node(t *testing.T) (*kit.Runtime, *configs.Registry) {
	t.Helper()
	rt, err := kit.NewRuntime(kit.Config{Node: "test", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	registry := newPerformer(t).registry
	if _, err := rt.SpawnTop("config", Props(Deps{Registry: registry})); err != nil {
		t.Fatal(err)
	}
	return rt, registry
}

func request[M proto.Message](t *testing.T, rt *kit.Runtime, m proto.Message) M {
	t.Helper()
	answer, err := rt.Ask(t.Context(), kit.Path("config"), m)
	if err != nil {
		t.Fatalf("%T: %v", m, err)
	}
	typed, ok := answer.(M)
	if !ok {
		t.Fatalf("%T was answered with %v", m, answer)
	}
	return typed
}

func TestRuntime(t *testing.T) {
	rt, registry := node(t)
	told := make(chan *messages.ConfigChanged, 16)
	if _, err := rt.SpawnTop("agents", kit.Props{Kind: "agents", New: func() kit.Machine { return &follower{told: told} }}); err != nil {
		t.Fatal(err)
	}
	first := <-told
	if first.GetVersion() != 1 || len(first.GetValues()) == 0 {
		t.Fatalf("first %v", first)
	}
	set := request[*messages.ConfigSetResult](t, rt, setTo("core.agent.queue_limit", "5", "core.daemon.log_level", "debug"))
	if set.GetError() != nil || len(set.GetValues()) != 2 || registry.Snapshot().Int(configs.KeyAgentQueueLimit) != 5 {
		t.Fatalf("set %v", set)
	}
	second := <-told
	if second.GetVersion() != 2 || len(second.GetValues()) != 1 || second.GetValues()[0].GetValue() != "5" {
		t.Fatalf("second %v", second)
	}
	refused := request[*messages.ConfigSetResult](t, rt, setTo("core.agent.queue_limits", "5"))
	if refused.GetError().GetCode() != "unknown_key" {
		t.Fatalf("refused %v", refused)
	}
	got := request[*messages.ConfigValues](t, rt, &messages.ConfigGet{Key: "core.agent.queue_limit"})
	if got.GetError() != nil || len(got.GetValues()) != 1 || got.GetValues()[0].GetOrigin() != "stored" {
		t.Fatalf("got %v", got)
	}
	list := request[*messages.ConfigValues](t, rt, &messages.ConfigList{Prefix: "core.admin."})
	if len(list.GetValues()) != 5 {
		t.Fatalf("%d values", len(list.GetValues()))
	}
	info, ok := rt.Actor("config")
	if !ok || info.GetKind() != Kind {
		t.Fatalf("tree %v", info)
	}
}

func TestSetsFromManyAskersAreAllAnswered(t *testing.T) {
	rt, registry := node(t)
	const askers = 40
	done := make(chan *messages.ConfigSetResult, askers)
	for range askers {
		go func() {
			answer, err := rt.Ask(t.Context(), kit.Path("config"), setTo("core.agent.queue_limit", "9"))
			if err != nil {
				t.Error(err)
			}
			result, _ := answer.(*messages.ConfigSetResult)
			done <- result
		}()
	}
	for range askers {
		if result := <-done; result == nil || result.GetError() != nil {
			t.Errorf("result %v", result)
		}
	}
	if v := registry.Snapshot().Version(); v != 1+askers {
		t.Errorf("version %d", v)
	}
}
