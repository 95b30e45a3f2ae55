//go:build ignore

// Command fixture writes a small store with tasks in each state as a zip file: `go run memory/ledger/testdata/fixture.go
// FILE`. It was run once with each format of the store; a file of an older format is never made again, it is what the
// upgrade is tested with.
package main

import (
	"archive/zip"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"time"

	"homeagent/memory/ledger"
	"homeagent/memory/store"
	"homeagent/messages"
)

var at = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

func main() {
	dir, err := os.MkdirTemp("", "fixture")
	check(err)
	defer os.RemoveAll(dir)
	fill(filepath.Join(dir, "store"))
	check(pack(os.Args[1], filepath.Join(dir, "store")))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// fill makes: a answered with two sent outputs, b queued, c running with a journal of three, d suspended with one of two,
// e steered into c, f failed, g queued with an output that was not sent; events, blocks and one resident.
func fill(dir string) {
	db, err := store.Open(dir, store.Options{Reserve: -1})
	check(err)
	l, err := ledger.Open(db, ledger.Options{})
	check(err)
	do := func(ops ...*messages.LedgerOp) {
		at = at.Add(time.Minute)
		done := l.Execute(at, []*messages.LedgerExecute{{Ops: ops, Sync: true}})
		if e := done[0].GetError(); e != nil {
			log.Fatal(e)
		}
	}
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		do(accept(id))
	}
	do(set("a", messages.TaskState_TASK_STATE_RUNNING, ""), step("a", messages.JournalKind_JOURNAL_KIND_STARTED))
	do(&messages.LedgerOp{Op: &messages.LedgerOp_Events{Events: &messages.AppendEvents{Events: []*messages.Event{
		event("a-in", messages.EventKind_EVENT_KIND_INPUT, "what is the weather"),
		event("a-out", messages.EventKind_EVENT_KIND_RESPONSE, "it rains"),
	}}}}, output("a-o1"), output("a-o2"))
	do(sent("a-o1"), sent("a-o2"))
	do(end("a", messages.End_END_ANSWERED, "ok"), end("f", messages.End_END_FAILED, "model_failed"))
	do(set("c", messages.TaskState_TASK_STATE_RUNNING, ""), step("c", messages.JournalKind_JOURNAL_KIND_STARTED))
	do(step("c", messages.JournalKind_JOURNAL_KIND_REQUEST))
	do(step("c", messages.JournalKind_JOURNAL_KIND_RESPONSE), set("e", messages.TaskState_TASK_STATE_STEERED, "c"))
	do(set("d", messages.TaskState_TASK_STATE_RUNNING, ""), step("d", messages.JournalKind_JOURNAL_KIND_STARTED))
	do(step("d", messages.JournalKind_JOURNAL_KIND_SUSPENDED), set("d", messages.TaskState_TASK_STATE_SUSPENDED, ""))
	do(output("g-o"))
	do(&messages.LedgerOp{Op: &messages.LedgerOp_PutAgent{PutAgent: &messages.PutAgent{
		Agent: &messages.AgentSpec{Agent: "main/resident/cook", Parent: "main", TaskPrompt: "cook"},
	}}})
	check(db.Close())
}

func text(s string) *messages.Part { return &messages.Part{Content: &messages.Part_Text{Text: s}} }

func accept(id string) *messages.LedgerOp {
	return &messages.LedgerOp{Op: &messages.LedgerOp_Accept{Accept: &messages.AcceptInput{Input: &messages.Input{
		Id: id, Channel: "cli", Parts: []*messages.Part{text("text of " + id)}, IdempotencyKey: "key " + id,
		Principal: &messages.Principal{Id: "owner", Kind: messages.PrincipalKind_PRINCIPAL_KIND_OWNER},
	}}}}
}

func set(id string, s messages.TaskState, joined string) *messages.LedgerOp {
	return &messages.LedgerOp{Op: &messages.LedgerOp_SetTask{SetTask: &messages.SetTask{TaskId: id, State: s, Joined: joined, Level: 2}}}
}

func step(id string, k messages.JournalKind) *messages.LedgerOp {
	return &messages.LedgerOp{Op: &messages.LedgerOp_Journal{Journal: &messages.JournalEntry{
		TaskId: id, Kind: k, AtUs: at.UnixMicro(), Attempt: 1, Text: k.String(),
	}}}
}

func output(id string) *messages.LedgerOp {
	return &messages.LedgerOp{Op: &messages.LedgerOp_Output{Output: &messages.OutputIntent{
		OutputId: id, TaskId: id[:1], Channel: "cli", Parts: []*messages.Part{text("said " + id)}, CreatedUs: at.UnixMicro(),
	}}}
}

func sent(id string) *messages.LedgerOp {
	return &messages.LedgerOp{Op: &messages.LedgerOp_Sent{Sent: &messages.OutputReceipt{OutputId: id, Receipt: "r", AtUs: at.UnixMicro()}}}
}

func end(id string, e messages.End, reason string) *messages.LedgerOp {
	return &messages.LedgerOp{Op: &messages.LedgerOp_End{End: &messages.EndTask{
		TaskId: id, End: e, Reason: reason, Text: "end of " + id, AtUs: at.UnixMicro(),
	}}}
}

func event(id string, k messages.EventKind, s string) *messages.Event {
	return &messages.Event{EventId: id, Kind: k, Blocks: []*messages.Block{{
		BlockId: id + "-b", Content: text(s),
	}}}
}

func pack(path, dir string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w := zip.NewWriter(file)
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		in, err := os.Open(p)
		if err != nil {
			return err
		}
		defer in.Close()
		out, err := w.CreateHeader(&zip.FileHeader{Name: filepath.ToSlash(rel), Method: zip.Deflate, Modified: time.Unix(0, 0).UTC()})
		if err != nil {
			return err
		}
		_, err = io.Copy(out, in)
		return err
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	fmt.Println(path)
	return file.Close()
}
