package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"homeagent/messages/api"
	"homeagent/providers/providertest"
)

// state of an actor as `waiter inspect` shows it.
func (n *node) inspect(path string) api.Actor {
	n.t.Helper()
	var a api.Actor
	decodeJSON(n.t, n.waiter("inspect", path, "--json").must(n.t).stdout, &a)
	return a
}

// TestOrders pauses, resumes, restarts and kills a turn; the node's own actors are out of reach.
func TestOrders(t *testing.T) {
	hold := func(gate string) providertest.Step {
		return providertest.Step{Times: 1, Text: []string{"One ", "two."}, Hold: providertest.Hold{Middle: gate}}
	}
	n, v := withVendor(t, hold("a"), hold("b"), hold("c"), providertest.Step{Text: []string{"One ", "two."}})
	tape := n.tape("")
	task := n.say("count")
	turn := "agents/main/turn/" + task
	first := v.held("a")
	if a := n.inspect(turn); a.System || a.Kind != "turn" || a.Inner == nil {
		t.Errorf("the turn is shown as %+v", a)
	}
	for range 2 { // twice is once
		contains(t, n.waiter("pause", turn).must(t).stdout, "paused")
	}
	v.Open("a")
	v.happens(providertest.Finished, func(e providertest.Event) bool { return e.Request == first })
	if a := n.inspect(turn); a.State != "paused" {
		t.Errorf("a paused turn is shown as %s", a.State)
	}
	if got := n.input(task); got.State != "running" {
		t.Errorf("the input of a paused turn is %+v", got)
	}
	n.waiter("resume", turn).must(t)
	tape.ended(task, "answered")
	tape.once(task, "ended")

	again := n.say("count again")
	turn = "agents/main/turn/" + again
	second := v.held("b")
	n.waiter("restart", turn).must(t)
	v.closed(second)
	third := v.held("c")
	n.waiter("kill", turn).must(t)
	v.closed(third)
	if e := tape.change(again, "ended"); e.Task.End != "stopped" {
		t.Errorf("after a restart and a kill: %+v", e.Task)
	}
	tape.once(again, "ended")
	if got := n.input(again); got.Starts != 2 {
		t.Errorf("the input is %+v", got)
	}

	for path, a := range n.actors() {
		if !a.System || path == "" {
			continue
		}
		for _, verb := range []string{"kill", "restart", "pause"} {
			got := n.waiter(verb, path)
			if got.code == 0 || !strings.Contains(got.stderr, "part of the node itself") {
				t.Errorf("%s %s: exit %d: %s", verb, path, got.code, got.stderr)
			}
		}
	}
	if got := n.ask("are you well?"); got.End != "answered" {
		t.Errorf("afterwards: %+v", got)
	}
}

// TestLiveSettings changes settings of a running node.
func TestLiveSettings(t *testing.T) {
	n, v := withVendor(t)
	call := providertest.Step{AfterTool: &no, Tools: []providertest.Tool{
		{ID: "c0", Name: "memory_commit", Args: json.RawMessage(`{"facts":[{"subject":"a","predicate":"is","object":"b"}]}`)},
		{ID: "c1", Name: "time_now", Args: json.RawMessage(`{}`)},
	}}
	for i, c := range []struct {
		denied string
		fails  map[string]bool
	}{
		{"memory_commit", map[string]bool{"c0": true}},
		{"time_*", map[string]bool{"c1": true}},
		{"memory_*,nosuch", map[string]bool{"c0": true}},
		{"", nil},
	} {
		set := []string{"config", "set", "core.tools.denied", c.denied}
		if c.denied == "" {
			set = []string{"config", "set", "--default", "core.tools.denied"}
		}
		contains(t, n.waiter(set...).must(t).stdout, "core.tools.denied = "+c.denied)
		if got := n.waiter("config", "get", "core.tools.denied").must(t).stdout; got != c.denied+"\n" {
			t.Errorf("set %q, got %q", c.denied, got)
		}
		v.plays(call, providertest.Step{AfterTool: &yes, Text: []string{"Well."}})
		before := len(v.bodies())
		tape := n.tape("")
		task := n.say(fmt.Sprintf("round %d", i))
		tape.ended(task, "answered")
		asks := v.bodies()[before:]
		if len(asks) != 2 {
			t.Fatalf("%q denied: %d requests reached the vendor\n%s", c.denied, len(asks), tape)
		}
		ids, results := asks[1].results()
		if len(ids) != 2 {
			t.Fatalf("%q denied: results %v", c.denied, ids)
		}
		for j, id := range ids {
			if c.fails[id] != strings.Contains(results[j], "denied") {
				t.Errorf("%q denied: %s gave %s", c.denied, id, results[j])
			}
		}
		for _, tool := range asks[0].Tools {
			name := tool.Function.Name
			if c.fails["c0"] && name == "memory_commit" || c.fails["c1"] && name == "time_now" {
				t.Errorf("%q denied: %s was offered to the model", c.denied, name)
			}
		}
	}
	// Several keys are set together or not at all.
	both := n.waiter("config", "set", "core.agent.name=Max", "core.agent.max_tool_turns=many")
	if both.code != 1 || n.waiter("config", "get", "core.agent.name").stdout != "Home\n" {
		t.Errorf("half of a set was kept: exit %d: %s", both.code, both.stderr)
	}
	n.waiter("config", "set", "core.agent.name", "Max").must(t)
	v.plays(providertest.Step{Text: []string{"I am Max."}})
	n.ask("who are you?")
	last := v.bodies()[len(v.bodies())-1]
	contains(t, string(last.Messages[0].Content), "You are Max")
	later := n.waiter("config", "set", "core.admin.event_ring", "500").must(t)
	contains(t, later.stdout, "after a restart", "core.admin.event_ring")
	n.kill()
	n.start()
	if got := n.waiter("config", "get", "core.agent.name").must(t).stdout; got != "Max\n" {
		t.Errorf("after a restart the name is %q", got)
	}
	n.waiter("config", "set", "--default", "core.agent.name").must(t)
	if got := n.waiter("config", "get", "core.agent.name").must(t).stdout; got != "Home\n" {
		t.Errorf("the default is %q", got)
	}
	n.stop()
	n.env = []string{"HOMED_CORE_AGENT_NAME=Env"}
	n.start()
	if got := n.waiter("config", "get", "core.agent.name").must(t).stdout; got != "Env\n" {
		t.Errorf("by the environment the name is %q", got)
	}
	n.stop()
	n.env = []string{"HOMED_CORE_AGENT_NAMES=Env"}
	contains(t, n.refuses(), "HOMED_CORE_AGENT_NAMES", "HOMED_CORE_AGENT_NAME")
}

// TestSecretsStayInside looks for the key of a source and the token of the node in all that a node says.
func TestSecretsStayInside(t *testing.T) {
	n, v := withVendor(t, providertest.Step{Times: 1, Text: []string{"Fine."}},
		providertest.Step{Status: 401, Body: `{"error":{"message":"Incorrect API key provided: ` + secretKey + `"}}`})
	tape := n.tape("")
	const other = "sk-e2e-other-55aa55aa"
	n.waiter("config", "set", "core.daemon.log_level", "debug").must(t)
	n.ask("hello")
	n.waiter("chat", "hello again") // the vendor shows the key in its error
	n.waiterIn(other+"\n", "config", "set", "--stdin", "core.llm.sources.scripted.api_key").must(t)
	v.plays(providertest.Step{Text: []string{"Fine."}})
	n.waiter("providers", "test", "scripted").must(t)
	if got := v.Requests()[len(v.Requests())-1].Header["Authorization"]; got != "Bearer "+other {
		t.Errorf("a changed key is not used: %q", got)
	}
	said := map[string]string{"events": tape.String()}
	for _, line := range []string{
		"config list", "config list --json", "config get core.llm.sources.scripted.api_key", "providers list", "providers list --json",
		"status --json", "tree --json", "agents --json", "usage --json", "memory --json", "logs --bytes 10000000", "providers test scripted --json",
	} {
		got := n.waiter(strings.Fields(line)...)
		said[line] = got.stdout + got.stderr
	}
	for path := range n.actors() {
		if path != "" {
			said["inspect "+path] = n.waiter("inspect", path, "--json").must(t).stdout
		}
	}
	if said["config get core.llm.sources.scripted.api_key"] != "set\n" {
		t.Errorf("a secret is shown as %q", said["config get core.llm.sources.scripted.api_key"])
	}
	res := n.http(t, "GET", "/metrics", "", n.auth())
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	said["metrics"] = string(b)
	token := n.auth().Get("Authorization")[len("Bearer "):]
	n.stop()
	said["output"] = n.output.String()
	if b, err = os.ReadFile(filepath.Join(n.data, "logs", "homed.log")); err != nil || len(b) == 0 {
		t.Fatalf("log: %d bytes, %v", len(b), err)
	}
	said["log file"] = string(b)
	for where, text := range said {
		for _, secret := range []string{secretKey, other, token} {
			if strings.Contains(text, secret) {
				i := strings.Index(text, secret)
				t.Errorf("%s shows %s: …%s", where, secret, text[max(0, i-120):i])
			}
		}
		if text == "" {
			t.Errorf("%s says nothing", where)
		}
	}
	for _, private := range []string{"run/admin.token", "secret.key"} {
		matches, err := filepath.Glob(filepath.Join(n.data, private))
		if err != nil || len(matches) > 1 {
			t.Fatal(err)
		}
		for _, f := range matches {
			if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v %v", private, info.Mode(), err)
			}
		}
	}
}

// TestEventReplay reconnects to the event stream by the id of the last event seen.
func TestEventReplay(t *testing.T) {
	n := newNode(t)
	n.start()
	tape := n.tape("")
	task := n.say("hello")
	tape.ended(task, "answered")
	n.tape("") // a later subscriber sees nothing of it
	kept := tape.all(func(e *api.Event) bool { return e.Type != api.EventContentDelta && e.Type != "reasoning_delta" })
	if len(kept) < 8 {
		t.Fatalf("%d events were recorded", len(kept))
	}
	from := kept[2]
	again := n.tape(fmt.Sprintf("%d-%d", from.Epoch, from.Sequence))
	again.ended(task, "answered")
	got := again.all(func(*api.Event) bool { return true })
	for i, e := range kept[3:] {
		if i >= len(got) || got[i].Sequence != e.Sequence || got[i].Type != e.Type {
			t.Fatalf("event %d of the replay is not %d %s:\n%s", i, e.Sequence, e.Type, again)
		}
	}
	n.stop()
	n.start()
	q := n.http(t, "GET", "/api/v1/events", "", http.Header{
		"Authorization": n.auth()["Authorization"], "Last-Event-ID": {fmt.Sprintf("%d-%d", from.Epoch, from.Sequence)},
	})
	defer q.Body.Close()
	names := map[string]string{}
	sc := bufio.NewScanner(q.Body)
	for name := ""; len(names) < 2 && sc.Scan(); {
		if v, ok := strings.CutPrefix(sc.Text(), "event: "); ok {
			name = v
		} else if v, ok := strings.CutPrefix(sc.Text(), "data: "); ok {
			names[name] = v
		}
	}
	contains(t, names["sync_required"], `"reason":"gone"`)
	contains(t, names["ready"], `"epoch":`)
}

// TestHealthAndMetrics reads what a monitor reads.
func TestHealthAndMetrics(t *testing.T) {
	n := newNode(t)
	n.start()
	n.ask("hello")
	for _, path := range []string{"/healthz", "/readyz"} {
		res := n.http(t, "GET", path, "", nil)
		var h api.Health
		if err := json.NewDecoder(res.Body).Decode(&h); err != nil || res.StatusCode != 200 || h.Status != "ok" {
			t.Errorf("%s: %s %+v %v", path, res.Status, h, err)
		}
		res.Body.Close()
	}
	res := n.http(t, "GET", "/metrics", "", n.auth())
	defer res.Body.Close()
	// The text format: each sample belongs to the family whose HELP and TYPE stand above it.
	head := regexp.MustCompile(`^# (HELP|TYPE) ([a-z_][a-z0-9_]*) (.+)$`)
	sample := regexp.MustCompile(`^([a-z_][a-z0-9_]*)(\{([a-z_]+="([^"\\]|\\.)*",?)*\})? (NaN|[+-]Inf|[-+0-9.e]+)$`)
	family, ours, seen := "", 0, map[string]bool{}
	for sc := bufio.NewScanner(res.Body); sc.Scan(); {
		line := sc.Text()
		if m := head.FindStringSubmatch(line); m != nil {
			if m[1] == "HELP" && seen[m[2]] {
				t.Errorf("a second family %s", m[2])
			}
			family, seen[m[2]] = m[2], true
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil || !strings.HasPrefix(m[1], family) || seen[line] {
			t.Errorf("in family %q: %s", family, line)
			continue
		}
		seen[line] = true
		if strings.HasPrefix(line, "homeagent_") {
			ours++
		}
	}
	if ours < 20 || !seen["homeagent_actor_restarts_total"] {
		t.Errorf("%d samples are ours", ours)
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("metrics come as %s", res.Header.Get("Content-Type"))
	}
}
