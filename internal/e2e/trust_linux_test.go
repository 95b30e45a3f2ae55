package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homeagent/messages/api"
)

// strangeAdapter answers by itself: it tells whether it runs, or attacks the process that it is in.
const strangeAdapter = `
return {
  contract = 1, name = "strange", version = "%s",
  capabilities = { stream = false, tools = false, vision = false, audio = false },
  respond = function(req)
    local last = req.messages[#req.messages].text
    if last:find("attack") then
      local t = {}
      while true do t[#t + 1] = { ("x"):rep(1000000) } end
    end
    return { text = "I run. ", finish = "stop", done = true }
  end,
}
`

// workers counts processes of the node that run scripts.
func (n *node) workers() int {
	n.t.Helper()
	found := 0
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		n.t.Fatal(err)
	}
	for _, f := range all {
		line, err := os.ReadFile(f)
		if err != nil || !strings.Contains(string(line), "adapter-worker") {
			continue // it has ended
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(f), "stat"))
		if _, rest, ok := strings.Cut(string(stat), ") "); err == nil && ok {
			var state string
			var parent int
			if _, err := fmt.Sscan(rest, &state, &parent); err == nil && state != "Z" && parent == n.cmd.Process.Pid {
				found++
			}
		}
	}
	return found
}

// TestUnconfirmedAdapter runs an adapter file of the data folder in a process of its own until its owner confirms it, and again
// after an edit; what it does there hurts nobody.
func TestUnconfirmedAdapter(t *testing.T) {
	n := newNode(t)
	file := filepath.Join(n.data, "adapters", "strange.lua")
	write := func(version string) {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, fmt.Appendf(nil, strangeAdapter, version), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("1")
	n.start()
	n.waiter("providers", "add", "strange", "--adapter", "strange", "--no-key", "--priority", "1").must(t)
	contains(t, n.waiter("chat", "hello").must(t).stdout, "I run.")
	if got := n.workers(); got != 1 {
		t.Errorf("%d workers run an unconfirmed file", got)
	}
	tape := n.tape("")
	n.waiter("chat", "attack") // it fails, or another source answers
	e := tape.await("the end of it", func(e *api.Event) bool { return e.Task != nil && e.Task.Change == "ended" })
	if round := tape.all(func(e *api.Event) bool { return e.Chain != nil }); len(round) == 0 && e.Task.End == "answered" {
		t.Errorf("%+v", e.Task)
	}
	contains(t, n.waiter("status").must(t).stdout, "ready")
	n.waiter("providers", "reset", "strange").must(t)
	contains(t, n.waiter("chat", "hello again").must(t).stdout, "I run.")

	contains(t, n.waiter("providers", "trust", "strange").must(t).stdout, "strange.lua")
	await := func(want int, why string) {
		t.Helper()
		for ctx := bounded(t); n.workers() != want; {
			if ctx.Err() != nil {
				t.Fatalf("%s: %d workers, want %d", why, n.workers(), want)
			}
			contains(t, n.waiter("chat", "still there?").must(t).stdout, "I run.")
		}
	}
	await(0, "confirmed")
	write("2, with an edit")
	await(1, "edited")
	contains(t, n.waiter("providers", "trust", file).must(t).stdout, "strange.lua")
	await(0, "confirmed again")
	contains(t, n.waiter("providers", "trust", "strange", "--revoke").must(t).stdout, "no adapter file is confirmed")
	await(1, "revoked")
	if got := n.waiter("providers", "trust", "nosuch"); got.code == 0 || !strings.Contains(got.stderr, "nosuch.lua") {
		t.Errorf("a file that is not there: %+v", got)
	}
	n.stop()
}

// TestUnconfirmedAdapterReachesNothing has a script ask for what is not its own server's.
func TestUnconfirmedAdapterReachesNothing(t *testing.T) {
	asked := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	defer other.Close()
	n := newNode(t)
	dir := filepath.Join(n.data, "adapters")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	script := `
return {
  contract = 1, name = "nosy", version = "1", endpoint = "/x", framing = "json", base_url = "http://127.0.0.1:1",
  capabilities = { stream = false, tools = false, vision = false, audio = false },
  transform_request = function()
    local r, why = http_get("` + other.URL + `/leak")
    error("seen " .. tostring(r) .. " " .. tostring(why) .. " os is " .. tostring(os) .. " io is " .. tostring(io) .. " load is " .. tostring(load))
  end,
  transform_response = function() return {} end,
}`
	if err := os.WriteFile(filepath.Join(dir, "nosy.lua"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	n.start()
	got := n.waiter("providers", "add", "nosy", "--adapter", "nosy", "--no-key", "--url", "http://127.0.0.1:1")
	if got.code == 0 {
		t.Errorf("it works: %s", got.stdout)
	}
	contains(t, got.stdout+got.stderr, "only the source's own server", "os is nil io is nil load is nil")
	select {
	case path := <-asked:
		t.Errorf("%s was asked for", path)
	default:
	}
}
