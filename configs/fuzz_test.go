package configs_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"homeagent/configs"
	"homeagent/messages"
)

// FuzzVaultOpen feeds foreign bytes to the decoder of sealed values: none may
// open except the one that was sealed.
func FuzzVaultOpen(f *testing.F) {
	vault := configs.NewVault(filepath.Join(f.TempDir(), "secret.key"))
	sealed, err := vault.Seal("core.a.b", "sk-one")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed)
	f.Add(sealed[:20])
	f.Add([]byte{})
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, record []byte) {
		text, err := vault.Open("core.a.b", record)
		switch {
		case err == nil && (text != "sk-one" || string(record) != string(sealed)):
			t.Fatalf("%x opened as %q", record, text)
		case err != nil && text != "":
			t.Fatalf("text %q beside the error %v", text, err)
		case err != nil && configs.CodeOf(err) == "":
			t.Fatalf("no code: %v", err)
		}
	})
}

// FuzzStoredRecord feeds foreign bytes to the reader of the store: the node must
// come up with either a legal value or a problem.
func FuzzStoredRecord(f *testing.F) {
	for _, value := range []string{"5", "0", "x", ""} {
		record, err := proto.Marshal(&messages.ConfigRecord{Value: value, SetUs: 1})
		if err != nil {
			f.Fatal(err)
		}
		f.Add("core.agent.queue_limit", record)
		f.Add("core.llm.sources.a.api_key", record)
	}
	f.Add("core.llm.sources..x", []byte{0xff})
	f.Fuzz(func(t *testing.T, key string, record []byte) {
		if key == "" {
			return
		}
		values, secrets := configs.NewMapKV(), configs.NewMapKV()
		_, _ = values.Put(key, record), secrets.Put(key, record)
		r, err := configs.Open(configs.Options{Values: values, Secrets: secrets, Vault: configs.NewVault(filepath.Join(t.TempDir(), "k"))})
		if err != nil {
			t.Fatal(err)
		}
		if limit := r.Snapshot().Int(configs.KeyAgentQueueLimit); limit < 1 || limit > 100000 {
			t.Fatalf("an illegal value is in force: %d", limit)
		}
		for _, p := range r.Problems() {
			if p.Err == nil || p.Err.Code == "" || p.Key == "" {
				t.Fatalf("an empty problem: %+v", p)
			}
		}
		if _, err := r.Set(nil, configs.Edit{Key: key, Unset: true}); err != nil && configs.CodeOf(err) == configs.CodeStore {
			t.Fatal(err)
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	n := newNode(t)
	const writers, each = 6, 20
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				key := fmt.Sprintf("core.tools.timeout.tool%d", w)
				if _, err := n.Set(nil, configs.Edit{Key: key, Value: fmt.Sprintf("%ds", i+1)}); err != nil {
					t.Error(err)
				}
				if s := n.Snapshot(); s.ToolTimeout(fmt.Sprintf("tool%d", w)).Seconds() != float64(i+1) {
					t.Errorf("after Set of %s the snapshot has %s", key, s.ToolTimeout(fmt.Sprintf("tool%d", w)))
				}
				n.List("core.")
				n.Problems()
			}
		})
	}
	group.Wait()
	if v := n.Snapshot().Version(); v != 1+writers*each {
		t.Errorf("version %d", v)
	}
}
