package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homeagent/messages/api"
)

// TestBackup makes a backup of a node that is talked to, and goes on with it in another folder.
func TestBackup(t *testing.T) {
	n := newNode(t)
	n.start()
	n.ask("My sister Lena is allergic to walnuts.")
	n.waiter("config", "set", "core.agent.name", "Juno").must(t)
	file := filepath.Join(t.TempDir(), "b.homed")
	busy := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-busy:
				return
			default:
				n.waiter("send", "hello", "--channel", "api")
			}
		}
	}()
	contains(t, command(t, "", "homed", "backup", file, "--data", n.data).must(t).stdout, "restored once to try it")
	close(busy)
	<-done
	if r := command(t, "", "homed", "restore", file, "--data", n.data); r.code != 1 {
		t.Errorf("restored over a running node: %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	n.stop()
	if r := command(t, "", "homed", "backup", file+"2", "--data", n.data); r.code != 2 {
		t.Errorf("a backup of no node: %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	other := newNode(t)
	command(t, "", "homed", "restore", file, "--data", other.data).must(t)
	contains(t, command(t, "", "homed", "doctor", "--data", other.data).must(t).stdout, "no node runs")
	other.start()
	contains(t, other.waiter("chat", "What did I tell you about Lena?").must(t).stdout, "walnuts")
	contains(t, other.waiter("config", "get", "core.agent.name").must(t).stdout, "Juno")
	other.stop()
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"truncated": whole[:len(whole)-100], "flipped": append(append([]byte{}, whole[:len(whole)/2]...), append([]byte{whole[len(whole)/2] ^ 1}, whole[len(whole)/2+1:]...)...),
	} {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		to := shortDir(t)
		if r := command(t, "", "homed", "restore", file, "--data", to); r.code != 1 || !strings.Contains(r.stderr, "backup") {
			t.Errorf("%s: %d\n%s%s", name, r.code, r.stdout, r.stderr)
		}
		if _, err := os.Stat(to); err == nil {
			t.Errorf("%s: a folder was left", name)
		}
	}
}

// TestStoreTakenAway moves the store of a running node: it takes nothing more, says why, and ends with an error; what it
// had accepted is there when the store is.
func TestStoreTakenAway(t *testing.T) {
	n := newNode(t)
	n.start()
	n.ask("My sister Lena is allergic to walnuts.")
	at := filepath.Join(n.data, "store")
	if err := os.Rename(at, at+".away"); err != nil {
		t.Fatal(err)
	}
	res := n.http(t, "POST", "/api/v1/inputs", `{"text":"how are you?","channel":"cli"}`, n.auth())
	defer func() { _ = res.Body.Close() }()
	var no api.Error
	if err := json.NewDecoder(res.Body).Decode(&no); err != nil || res.StatusCode != 503 || no.Code != "store_broken" {
		t.Errorf("an input: %d %+v, %v", res.StatusCode, no, err)
	}
	ready := n.http(t, "GET", "/readyz", "", nil)
	defer func() { _ = ready.Body.Close() }()
	var h api.Health
	if err := json.NewDecoder(ready.Body).Decode(&h); err != nil || ready.StatusCode != 503 || h.Status != "broken" || h.Reason == "" {
		t.Errorf("readyz: %d %+v, %v", ready.StatusCode, h, err)
	}
	if code := n.wait(); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, n.output.String(), "cannot go on", "is gone")
	if err := os.RemoveAll(at); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(at+".away", at); err != nil {
		t.Fatal(err)
	}
	n.start()
	contains(t, n.waiter("chat", "What did I tell you about Lena?").must(t).stdout, "walnuts")
	n.stop()
}
