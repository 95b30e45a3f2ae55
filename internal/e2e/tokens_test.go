package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homeagent/internal/client"
	"homeagent/providers/providertest"
)

// holder is somebody with a token, at the TCP door.
type holder struct {
	n    *node
	file string
}

// holder makes a named token and keeps it in a file.
func (n *node) holder(name string, args ...string) holder {
	n.t.Helper()
	text := n.waiter(append([]string{"tokens", "add", name}, args...)...).must(n.t).stdout
	file := filepath.Join(n.t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
	return holder{n, file}
}

func (h holder) waiter(args ...string) result {
	h.n.t.Helper()
	return command(h.n.t, "", "waiter", append(args, "--node", "http://"+h.n.state().HTTP, "--token-file", h.file)...)
}

// TestTokens gives a person a token: it talks, sees its own, and nothing else; it survives a restart, and ends at once when
// it is taken back.
func TestTokens(t *testing.T) {
	n, v := withVendor(t,
		providertest.Step{Match: "the secret of the owner", Text: []string{"Noted."}},
		providertest.Step{Match: "from anna", Text: []string{"Hello ", "Anna."}},
	)
	n.waiter("chat", "the secret of the owner").must(t)
	anna := n.holder("anna", "--principal", "person")
	if got := anna.waiter("chat", "from anna").must(t).stdout; got != "Hello Anna.\n" {
		t.Errorf("anna is answered %q", got)
	}
	// Her conversation "main" is not the owner's: what was said there is not in her prompt.
	requests := v.bodies()
	for _, m := range requests[len(requests)-1].Messages {
		if m.Role == "assistant" || m.Role == "user" && strings.Contains(string(m.Content), "secret") {
			t.Errorf("her prompt holds the owner's conversation: %s", m.Content)
		}
	}
	for _, args := range []string{
		"status", "tree", "queue", "config list", "config set core.agent.name X", "approvals", "tokens", "tokens add more", "agents",
		"memory search secret", "providers list", "usage", "nodes", "channels", "timers", "inspect guard", "kill agents/main/turn/x",
		"events --types tool_call", "send --mode interrupt x", "send --level 3 x", "send --channel agents x", "send --agent cook x",
		"stop --agent cook",
	} {
		r := anna.waiter(strings.Fields(args)...)
		if r.code != 2 || !strings.Contains(r.stderr, "not_allowed") && !strings.Contains(r.stderr, "level_not_allowed") {
			t.Errorf("%s: exit %d, %s%s", args, r.code, r.stdout, r.stderr)
		}
	}
	anna.waiter("stop").must(t)

	n.stop()
	n.start()
	anna.waiter("send", "from anna").must(t)
	c, err := client.Open(client.Options{Node: "http://" + n.state().HTTP, TokenFile: anna.file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	st, err := c.Events(bounded(t), client.StreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if f, err := st.Next(); err != nil || f.Ready == nil {
		t.Fatalf("the stream begins with %+v, %v", f, err)
	}
	n.waiter("tokens", "remove", "anna").must(t)
	// The stream ends, and its client is not let in again.
	for {
		if _, err := st.Next(); err != nil {
			contains(t, err.Error(), "no valid credential")
			break
		}
	}
	if r := anna.waiter("send", "again"); r.code != 2 || !strings.Contains(r.stderr, "unauthorized") {
		t.Errorf("a removed token: exit %d, %s", r.code, r.stderr)
	}
	if r := n.waiter("config", "get", "core.agent.name"); strings.TrimSpace(r.must(t).stdout) == "X" {
		t.Error("anna changed a setting")
	}
	res := n.http(t, "GET", "/api/v1/status", "", http.Header{"Authorization": {"Bearer nonsense"}})
	defer res.Body.Close()
	if res.StatusCode != 401 {
		t.Errorf("nonsense is let in: %d", res.StatusCode)
	}
}
