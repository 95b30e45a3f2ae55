package turn

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// player is an actor that answers for the world.
type player struct {
	mu   *sync.Mutex
	w    *world
	path string
}

func (p player) Step(_ time.Time, e kit.Event) []kit.Effect {
	msg, ok := e.Msg.(proto.Message)
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []kit.Effect
	for _, a := range p.w.reply(kit.Send{To: kit.Path(p.path), Msg: msg, Corr: e.Corr}) {
		m := a.Msg.(proto.Message)
		if a.Corr == "" { // parts of a stream
			out = append(out, kit.Send{To: msg.(*messages.Complete).GetReplyTo(), Msg: m})
			continue
		}
		out = append(out, e.Reply(m))
	}
	return out
}

// A whole turn under the runtime: requests find their answers, and the actor is gone when it has finished.
func TestActor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, err := kit.NewRuntime(kit.Config{Node: "n", Epoch: 7, Seed: 1, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t)
		w.tools = []*messages.ToolDef{tool("a", once, finishes, false)}
		w.model = byRound([]string{"a"}, "Done.")
		var mu sync.Mutex
		paths := []string{"ledger", "memory", "memory/context", "providers", "tools", "channels", "guard", "agents/main/scheduler"}
		for s := messages.Stage_STAGE_ON_INPUT; s <= messages.Stage_STAGE_AFTER_OUTPUT; s++ {
			paths = append(paths, "stages/"+stageName(s))
		}
		for _, path := range paths {
			p := kit.Props{Kind: "player", New: func() kit.Machine { return player{&mu, w, path} }}
			if _, err := rt.SpawnTop(path, p); err != nil {
				t.Fatal(err)
			}
		}
		const name = "agents/main/turn/T1"
		if _, err := rt.SpawnTop(name, Props(testDeps, w.startTurn())); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		mu.Lock()
		w.ended = true
		w.wantEnd(answered, "ok", "Done.")
		if w.runs["a T1/1/c0"] != 1 || w.commits != 1 || w.receipts != 1 {
			t.Errorf("runs %v, commits %d, receipts %d", w.runs, w.commits, w.receipts)
		}
		mu.Unlock()
		if _, alive := rt.Resolve(name); alive {
			t.Error("the turn's actor outlives its end")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := rt.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}
