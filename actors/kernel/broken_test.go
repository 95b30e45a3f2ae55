package kernel

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// A node whose store is taken away says so at once, takes nothing, and ends with an error.
func TestStoreTakenAway(t *testing.T) {
	for _, how := range []string{"moved", "removed", "replaced"} {
		t.Run(how, func(t *testing.T) {
			o := options(t)
			o.Grace = time.Millisecond
			n := boot(t, o)
			at := n.w.layout.Store()
			var err error
			switch how {
			case "moved":
				err = os.Rename(at, at+".away")
			case "removed":
				err = os.RemoveAll(at)
			case "replaced":
				if err = os.Rename(at, at+".away"); err == nil {
					err = os.CopyFS(at, os.DirFS(at+".away"))
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			in := &messages.Input{Id: "one", Channel: "api", Parts: []*messages.Part{{Content: &messages.Part_Text{Text: "hello"}}}}
			got, err := n.w.rt.Ask(context.Background(), kit.Path("ledger"), &messages.LedgerExecute{Ops: []*messages.LedgerOp{{
				Op: &messages.LedgerOp_Accept{Accept: &messages.AcceptInput{Input: in}},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			done := got.(*messages.LedgerDone)
			if code := done.GetError().GetCode(); code != "store_broken" {
				t.Errorf("an input was answered %v", done)
			}
			d := &doctor{layout: n.w.layout}
			ready, err := d.askReady(t.Context())
			if err != nil || ready.Status != "broken" || !strings.Contains(ready.Reason, "of the store") {
				t.Errorf("readyz %+v, %v", ready, err)
			}
			select {
			case lost := <-n.Lost():
				var e *LostError
				if !errors.As(lost, &e) || e.Path != "ledger" || !strings.Contains(lost.Error(), "cannot go on") {
					t.Errorf("lost %v", lost)
				}
			case <-time.After(10 * time.Second):
				t.Error("the node goes on")
			}
			if how == "moved" {
				// Badger ends its goroutines when its folder is there again.
				if err := os.Rename(at+".away", at); err != nil {
					t.Fatal(err)
				}
			} else if err := os.MkdirAll(at+"/db", 0o700); err != nil {
				t.Fatal(err)
			}
			if err := n.Close(context.Background()); err == nil || !strings.Contains(err.Error(), "broken") {
				t.Errorf("Close: %v", err)
			}
			if _, err := os.Stat(at + "/clean"); how == "moved" && err == nil {
				t.Error("a broken store is noted as closed in order")
			}
		})
	}
}
