package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"homeagent/configs/paths"
	"homeagent/internal/client"
	"homeagent/memory/ledger"
	"homeagent/memory/store"
	"homeagent/messages"
	"homeagent/providers/providertest"
)

// journaled is how many tasks with journals a recovered store holds, and waiting how many that have not ended.
const (
	journaled = 10_000
	waiting   = 200
)

// recovery measures the start over a store that a kill left: many tasks with their journals, some of which wait, and one
// that runs with a model that never answers. Each start is ended by the next kill.
func (b *bench) recovery(ctx context.Context) error {
	data := filepath.Join(b.dir, "recovery")
	if err := seedTasks(data); err != nil {
		return err
	}
	v, err := providertest.Start("", providertest.Script{Steps: []providertest.Step{{Text: []string{"ok"}, Times: 1}, {Hang: true}}})
	if err != nil {
		return err
	}
	defer v.Close()
	var took sample
	for i := range 1 + warmStarts + b.recovering {
		n, err := start(ctx, b.binary, data)
		if err != nil {
			return err
		}
		if i == 0 {
			source := client.Source{Name: "scripted", Adapter: "openai", BaseURL: v.URL(), Model: "scripted", Enabled: true}
			_, err = n.client.AddSource(ctx, client.AddSource{Source: source, APIKey: "sk-nodebench"})
		} else if i > warmStarts {
			took.add(n.took)
		}
		if err == nil && i == warmStarts+b.recovering {
			err = b.stillThere(ctx, n)
		}
		n.client.Close()
		if err := errors.Join(err, n.kill()); err != nil {
			return err
		}
	}
	f, err := took.figure(fmt.Sprintf("kill to ready, %d journaled tasks", journaled), "ms", b.recovering)
	f.Note = "from the start of the process after kill -9 to its ready line"
	b.report(f.within("p99", 1000))
	return err
}

// stillThere makes sure that what was measured was a node that still has its tasks.
func (*bench) stillThere(ctx context.Context, n *node) error {
	s, err := n.client.Status(ctx)
	if err != nil {
		return err
	}
	if s.Ledger.Accepted < journaled+waiting || s.Ledger.Open == 0 {
		return fmt.Errorf("%w: of %d tasks it knows %d, and %d are open", errNode, journaled+waiting, s.Ledger.Accepted, s.Ledger.Open)
	}
	return nil
}

// seedTasks writes tasks with their journals below data, by the engines of the node.
func seedTasks(data string) (err error) {
	layout, err := paths.Resolve(data, func(string) string { return "" })
	if err != nil {
		return err
	}
	if err := layout.Create(); err != nil {
		return err
	}
	db, err := store.Open(layout.Store(), store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	l, err := ledger.Open(db, ledger.Options{})
	if err != nil {
		return err
	}
	const together = 200 // in one sync
	for i := 0; i < journaled+waiting; i += together {
		var group []*messages.LedgerExecute
		for k := i; k < i+together; k++ {
			group = append(group, &messages.LedgerExecute{Ops: seededTask(seededID(k), k < journaled)})
		}
		for _, done := range l.Execute(time.Now(), group) {
			if failed := done.GetError(); failed != nil {
				return fmt.Errorf("seed tasks from %d: %s", i, failed.GetMessage())
			}
		}
	}
	return db.Sync()
}

// seededID is the id of the i-th task.
func seededID(i int) string { return fmt.Sprintf("0SEED%021d", i) }

// seededTask accepts an input; one that is over has the journal of a round with a call.
func seededTask(id string, over bool) []*messages.LedgerOp {
	ops := []*messages.LedgerOp{{Op: &messages.LedgerOp_Accept{Accept: &messages.AcceptInput{Input: &messages.Input{
		Id: id, Channel: "api", Agent: "main", Conversation: "main", Parts: []*messages.Part{{Content: &messages.Part_Text{Text: "text of " + id}}},
		Principal: &messages.Principal{Id: "owner", Kind: messages.PrincipalKind_PRINCIPAL_KIND_OWNER}, CreatedUs: time.Now().UnixMicro(),
	}}}}}
	if !over {
		return ops
	}
	ops = append(ops, &messages.LedgerOp{Op: &messages.LedgerOp_SetTask{SetTask: &messages.SetTask{TaskId: id, State: messages.TaskState_TASK_STATE_RUNNING}}})
	for round, kind := range []messages.JournalKind{
		messages.JournalKind_JOURNAL_KIND_STARTED, messages.JournalKind_JOURNAL_KIND_REQUEST, messages.JournalKind_JOURNAL_KIND_RESPONSE,
		messages.JournalKind_JOURNAL_KIND_TOOL_STARTED, messages.JournalKind_JOURNAL_KIND_TOOL_RESULT, messages.JournalKind_JOURNAL_KIND_COMMITTED,
	} {
		ops = append(ops, &messages.LedgerOp{Op: &messages.LedgerOp_Journal{Journal: &messages.JournalEntry{
			TaskId: id, Kind: kind, Round: int32(round/3 + 1), Attempt: 1, Text: "what was done at this step of " + id,
		}}})
	}
	return append(ops, &messages.LedgerOp{Op: &messages.LedgerOp_End{End: &messages.EndTask{
		TaskId: id, End: messages.End_END_ANSWERED, Reason: "ok", AtUs: time.Now().UnixMicro(),
	}}})
}
