package guard

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/memory/approvals"
	ledgerengine "homeagent/memory/ledger"
	"homeagent/memory/store"
	"homeagent/messages"
)

// keeper stands for ledger: it executes what it is given at once, and knows every task as running.
type keeper struct{ l *ledgerengine.Ledger }

func (k *keeper) Step(now time.Time, e kit.Event) []kit.Effect {
	switch m := e.Msg.(type) {
	case *messages.LedgerExecute:
		return []kit.Effect{e.Reply(k.l.Execute(now, []*messages.LedgerExecute{m})[0])}
	case *messages.TaskQuery:
		return []kit.Effect{e.Reply(&messages.TaskStatus{State: messages.TaskState_TASK_STATE_PARKED})}
	}
	return nil
}

// teller stands for config.
type teller struct{ values *messages.ConfigChanged }

func (c *teller) Step(_ time.Time, e kit.Event) []kit.Effect {
	if _, ok := e.Msg.(*messages.ConfigSubscribe); ok {
		return []kit.Effect{kit.Send{To: e.From, Msg: c.values}}
	}
	return nil
}

// listener stands for a scheduler and for events.
type listener struct{ heard chan proto.Message }

func (l *listener) Step(_ time.Time, e kit.Event) []kit.Effect {
	if m, ok := e.Msg.(proto.Message); ok {
		l.heard <- m
	}
	return nil
}

// node is a guard with its neighbours over a store on disk.
type node struct {
	t     *testing.T
	rt    *kit.Runtime
	db    *store.DB
	heard chan proto.Message // by the scheduler
}

func startNode(t *testing.T, dir string) *node {
	t.Helper()
	db, err := store.Open(dir, store.Options{Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledgerengine.Open(db, ledgerengine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{}, 1)
	rt, err := kit.NewRuntime(kit.Config{
		Node: "test", Logger: slog.New(slog.DiscardHandler),
		Observe: func(f kit.Fact) {
			if f.Code == kit.FactReady && f.Path == "guard" {
				ready <- struct{}{}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, rt: rt, db: db, heard: make(chan proto.Message, 64)}
	spawn := func(path string, p kit.Props) {
		t.Helper()
		p.Kind = path
		if _, err := rt.SpawnTop(path, p); err != nil {
			t.Fatal(err)
		}
	}
	spawn("ledger", kit.Props{New: func() kit.Machine { return &keeper{l} }})
	spawn("config", kit.Props{New: func() kit.Machine { return &teller{policy()} }})
	spawn("events", kit.Props{New: func() kit.Machine { return &listener{make(chan proto.Message, 64)} }})
	spawn("agents/main/scheduler", kit.Props{New: func() kit.Machine { return &listener{n.heard} }})
	spawn("guard", Props(Deps{Engine: approvals.New(db), Ledger: kit.Path("ledger")}))
	<-ready
	return n
}

func (n *node) stop() {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := n.rt.Shutdown(ctx); err != nil {
		n.t.Fatal(err)
	}
	if err := n.db.Close(); err != nil {
		n.t.Fatal(err)
	}
}

// put asks guard and wants an answer of a type.
func put[T proto.Message](n *node, m proto.Message) T {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	got, err := n.rt.Ask(ctx, kit.Path("guard"), m)
	if err != nil {
		n.t.Fatal(err)
	}
	v, ok := got.(T)
	if !ok {
		n.t.Fatalf("%T was answered with %T %v", m, got, got)
	}
	return v
}

// TestSurvivesTheNode stops the node between question, decision and use.
func TestSurvivesTheNode(t *testing.T) {
	dir := t.TempDir()
	check := asking("", shell, call("T1/1/c0", "shell", `{"argv":["ls"]}`)).Msg.(*messages.CheckCalls)

	n := startNode(t, dir)
	v := put[*messages.CallVerdicts](n, check).GetVerdicts()[0]
	if v.GetVerdict() != ask {
		t.Fatalf("verdict %v", v)
	}
	put[*messages.NamedToken](n, &messages.AddToken{Token: &messages.NamedToken{
		Name: "cron", Digest: make([]byte, 32), Principal: &messages.Principal{Id: "token:cron", Kind: robot.GetKind()},
	}})
	n.stop()

	n = startNode(t, dir)
	if again := put[*messages.CallVerdicts](n, check).GetVerdicts()[0]; !proto.Equal(again, v) {
		t.Errorf("after a restart %v, before %v", again, v)
	}
	l := put[*messages.ApprovalList](n, &messages.ListApprovals{TaskId: "T1"})
	if len(l.GetApprovals()) != 1 || string(l.GetApprovals()[0].GetCall().GetArgumentsJson()) != `{"argv":["ls"]}` {
		t.Fatalf("list %v", l)
	}
	if l := put[*messages.TokenList](n, &messages.ListTokens{}); len(l.GetTokens()) != 1 || l.GetTokens()[0].GetName() != "cron" {
		t.Errorf("tokens %v", l)
	}
	a := put[*messages.Approval](n, &messages.DecideApproval{
		ApprovalId: v.GetApprovalId(), Hash: l.GetApprovals()[0].GetHash(), Allow: true, Principal: owner, Note: "go",
	})
	if a.GetState() != messages.ApprovalState_APPROVAL_STATE_ALLOWED || a.GetNote() != "go" || a.GetDecidedBy().GetId() != "owner" || a.GetCall().GetName() != "shell" {
		t.Errorf("decided %v", a)
	}
	if m := (<-n.heard).(*messages.ApprovalsDecided); m.GetTaskId() != "T1" {
		t.Errorf("the scheduler heard %v", m)
	}
	n.stop()

	n = startNode(t, dir)
	defer n.stop()
	if m := (<-n.heard).(*messages.ApprovalsDecided); m.GetTaskId() != "T1" {
		t.Errorf("after the restart the scheduler heard %v", m)
	}
	if v := put[*messages.CallVerdicts](n, check).GetVerdicts()[0]; v.GetVerdict() != allow {
		t.Errorf("the decision is lost: %v", v)
	}
	if l := put[*messages.ApprovalList](n, &messages.ListApprovals{}); len(l.GetApprovals()) != 0 {
		t.Errorf("it still waits: %v", l)
	}
	if l := put[*messages.ApprovalList](n, &messages.ListApprovals{All: true, ApprovalId: v.GetApprovalId()}); len(l.GetApprovals()) != 1 {
		t.Errorf("it is not kept: %v", l)
	}
	if l := put[*messages.ApprovalList](n, &messages.ListApprovals{All: true, ApprovalId: "ap-none"}); len(l.GetApprovals()) != 0 {
		t.Errorf("something else: %v", l)
	}
}
