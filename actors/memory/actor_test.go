package memory

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"homeagent/actors/kit"
	"homeagent/memory/contextmem"
	"homeagent/memory/graphmem"
	"homeagent/memory/ledger"
	"homeagent/memory/lexical"
	"homeagent/memory/recall"
	"homeagent/memory/store"
	"homeagent/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// graph stores what memory hands over, as memory/graph does.
type graph struct {
	t *testing.T
	g *graphmem.Graph
}

func (g graph) Step(now time.Time, e kit.Event) []kit.Effect {
	m, ok := e.Msg.(*messages.CommitFacts)
	if !ok {
		return nil
	}
	res := &messages.CommitFactsResult{}
	for i, f := range m.GetFacts() {
		out, err := g.g.Commit(context.Background(), []graphmem.Fact{{
			ID: m.GetKey() + "/f" + string(rune('0'+i)), Subject: f.GetSubject(), Predicate: f.GetPredicate(), Object: f.GetObject(),
			LearnedAt: now, Source: f.GetSource(),
		}})
		if err != nil {
			g.t.Error(err)
			return nil
		}
		res.FactIds = append(res.FactIds, out[0].ID)
	}
	return []kit.Effect{e.Reply(res)}
}

// registry takes the tools.
type registry struct{ got chan *messages.RegisterTools }

func (r registry) Step(_ time.Time, e kit.Event) []kit.Effect {
	m, ok := e.Msg.(*messages.RegisterTools)
	if !ok {
		return nil
	}
	r.got <- m
	return []kit.Effect{e.Reply(&messages.Ok{})}
}

// The actor with the real engines: it registers its tools, recalls what was said, stores a fact by a tool and finds it.
func TestActor(t *testing.T) {
	db, err := store.Open(t.TempDir(), store.Options{Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	index := &lexical.Index{Words: &lexical.Dictionary{}}
	l, err := ledger.Open(db, ledger.Options{Indexer: contextmem.New(db, index)})
	if err != nil {
		t.Fatal(err)
	}
	g, err := graphmem.Open(db)
	if err != nil {
		t.Fatal(err)
	}
	done := l.Execute(start, []*messages.LedgerExecute{{Ops: []*messages.LedgerOp{{Op: &messages.LedgerOp_Events{
		Events: &messages.AppendEvents{Events: []*messages.Event{{
			EventId: "E1", Kind: messages.EventKind_EVENT_KIND_INPUT, Agent: "main", Conversation: "c", AtUs: start.UnixMicro(),
			Blocks: []*messages.Block{{BlockId: "E1/b", Content: &messages.Part{Content: &messages.Part_Text{Text: "我妹妹的生日是五月二日"}}}},
		}}},
	}}}}})
	if e := done[0].GetError(); e != nil {
		t.Fatal(e)
	}

	rt, err := kit.NewRuntime(kit.Config{Node: "n", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer func() {
		if err := rt.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	}()
	top := func(name string, p kit.Props) *messages.Address {
		t.Helper()
		a, err := rt.SpawnTop(name, p)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	memory := top("memory", Props(Deps{
		Engine: recall.New(db, index, g), Words: index.Words, Tools: kit.Path("tools"), Graph: kit.Path("memory/graph"),
	}))
	// The registry comes later than memory.
	reg := registry{got: make(chan *messages.RegisterTools, 8)}
	top("tools", kit.Props{Kind: "tools", New: func() kit.Machine { return reg }})
	top("memory/graph", kit.Props{Kind: "memory/graph", New: func() kit.Machine { return graph{t, g} }})
	select {
	case m := <-reg.got:
		if len(m.GetTools()) != 2 || m.GetOwner().GetPath() != "memory" {
			t.Errorf("registered %v", m)
		}
		for _, d := range m.GetTools() {
			if !json.Valid(d.GetParametersJson()) {
				t.Errorf("schema of %s is not JSON", d.GetName())
			}
		}
	case <-ctx.Done():
		t.Fatal("the tools were not registered")
	}

	got, err := kit.Expect[*messages.RecallResult](ctx, rt, memory, &messages.Recall{Text: "我跟你说过我妹妹的生日吗", Agent: "main"})
	if err != nil || len(got.GetItems()) != 1 || got.GetItems()[0].GetId() != "E1" {
		t.Fatalf("recall %v, %v", got, err)
	}
	if got, err = kit.Expect[*messages.RecallResult](ctx, rt, memory, &messages.Recall{Text: "tell me about the submarine"}); err != nil || !got.GetNone() {
		t.Fatalf("nothing known: %v, %v", got, err)
	}
	tool := func(name, args string) string {
		t.Helper()
		r, err := kit.Expect[*messages.ToolResult](ctx, rt, memory, &messages.CallTool{
			TaskId: "T", Agent: "main", Call: &messages.ToolInvocation{CallId: "T/1/c0", Name: name, ArgumentsJson: []byte(args)},
		})
		if err != nil || r.GetError() != nil {
			t.Fatalf("%s: %v, %v", name, r, err)
		}
		return r.GetContent()
	}
	if s := tool(toolCommit, `{"facts":[{"subject":"Zoe","predicate":"plays","object":"oboe"}]}`); s != `{"stored":1,"known":0,"fact_ids":["T/1/c0/f0"]}` {
		t.Errorf("committed %s", s)
	}
	var found recallJSON
	if err := json.Unmarshal([]byte(tool(toolRecall, `{"keywords":["Zoe"]}`)), &found); err != nil || len(found.Items) != 1 || found.Items[0].Text != "Zoe plays oboe" {
		t.Errorf("found %+v, %v", found, err)
	}
	look, err := kit.Expect[*messages.MemoryAnswer](ctx, rt, memory, &messages.MemoryQuery{Entity: "zoe"})
	if err != nil || len(look.GetFacts()) != 1 || look.GetFacts()[0].GetSource() != "T/in" || look.GetFigures().GetEvents() != 1 {
		t.Errorf("looked up %v, %v", look, err)
	}
}
