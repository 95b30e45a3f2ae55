package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"homeagent/messages/api"
	"homeagent/providers/providertest"
)

// uses is a step in which the model calls tools, given as name and arguments in turn.
func uses(calls ...string) providertest.Step {
	s := providertest.Step{Times: 1}
	for i := 0; i < len(calls); i += 2 {
		s.Tools = append(s.Tools, providertest.Tool{ID: "c" + calls[i], Name: calls[i], Args: json.RawMessage(calls[i+1])})
	}
	return s
}

func says(text string) providertest.Step {
	return providertest.Step{Text: []string{text}, Times: 1}
}

// TestToolsThatAct has the model write a file, tell people of it, and read it back.
func TestToolsThatAct(t *testing.T) {
	n, v := withVendor(t,
		uses("files_write", `{"path":"notes/milk.md","content":"Milk is out."}`),
		uses("output_send", `{"channel":"cli","text":"I noted the milk."}`),
		uses("files_read", `{"path":"files/notes/milk.md"}`, "files_list", `{"path":"notes"}`, "files_read", `{"path":"notes"}`),
		says("Noted."),
	)
	tape := n.tape("")
	task := n.say("Note that the milk is out.")
	if got := tape.ended(task, "answered"); got.Task.Text != "Noted." {
		t.Errorf("the answer is %q", got.Task.Text)
	}
	last := v.bodies()[3]
	_, contents := last.results()
	if len(contents) != 5 {
		t.Fatalf("%d results: %q", len(contents), contents)
	}
	contains(t, contents[0], `"bytes":12`, "files/notes/milk.md")
	if contents[1] != "ok" {
		t.Errorf("the send said %q", contents[1])
	}
	contains(t, contents[2], `"content":"Milk is out."`)
	contains(t, contents[3], `"name":"milk.md"`)
	contains(t, contents[4], "files_list")
	sent := tape.all(func(e *api.Event) bool { return e.Type == "agent_output" && e.TaskID == task })
	if len(sent) != 2 || sent[0].Text != "I noted the milk." || sent[1].Text != "Noted." {
		t.Errorf("people were told %+v", sent)
	}
	b, err := os.ReadFile(filepath.Join(n.data, "files", "notes", "milk.md"))
	if err != nil || string(b) != "Milk is out." {
		t.Errorf("the file holds %q, %v", b, err)
	}
}

// TestFetchAtHome fetches from this machine, which is denied until the owner allows it, at once and without a restart.
func TestFetchAtHome(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<title>NAS</title><p>All disks are <b>well</b>."))
	}))
	t.Cleanup(page.Close)
	fetch := `{"url":"` + page.URL + `"}`
	n, v := withVendor(t, uses("web_fetch", fetch), says("No."), uses("web_fetch", fetch), says("Yes."))
	if got := n.ask("How is the NAS?"); got.Text != "No." {
		t.Errorf("the answer is %q", got.Text)
	}
	n.waiter("config", "set", "core.egress.allow", strings.TrimPrefix(page.URL, "http://")).must(t)
	if got := n.ask("And now?"); got.Text != "Yes." {
		t.Errorf("the answer is %q", got.Text)
	}
	bodies := v.bodies()
	_, first := bodies[1].results()
	contains(t, first[len(first)-1], "this machine", "core.egress.allow")
	_, second := bodies[3].results()
	contains(t, second[len(second)-1], `"title":"NAS"`, "All disks are **well**.")
}

// TestPluginsOnAndOff turns a plugin off and on; the model is offered its tools accordingly.
func TestPluginsOnAndOff(t *testing.T) {
	n, v := withVendor(t, says("a"), says("b"), says("c"))
	offered := func(a asked) bool {
		return slices.ContainsFunc(a.Tools, func(tool struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		},
		) bool {
			return tool.Function.Name == "files_read"
		})
	}
	contains(t, n.waiter("plugins").must(t).stdout, "files", "web", "running", "builtin")
	n.ask("one")
	contains(t, n.waiter("plugins", "disable", "files").must(t).stdout, "disabled", "plugin.files.enabled")
	n.ask("two")
	contains(t, n.waiter("plugins", "enable", "files").must(t).stdout, "running", "files_append, files_list, files_read, files_write")
	n.ask("three")
	bodies := v.bodies()
	if !offered(bodies[0]) || offered(bodies[1]) || !offered(bodies[2]) {
		t.Errorf("files_read was offered: %v %v %v", offered(bodies[0]), offered(bodies[1]), offered(bodies[2]))
	}
	t.Log("an ended actor is broken, and enable starts it again")
	n.waiter("kill", "plugins/files").must(t)
	if got := n.waiter("plugins"); got.code != 1 {
		t.Errorf("exit %d: %s", got.code, got.stdout)
	}
	contains(t, n.waiter("plugins", "enable", "files").must(t).stdout, "running")
	t.Log("a folder that holds the node's own data breaks the plugin, and says so")
	n.waiter("config", "set", "plugin.files.roots", filepath.Dir(n.data)).must(t)
	got := n.waiter("plugins", "enable", "files")
	if got.code != 1 {
		t.Errorf("exit %d", got.code)
	}
	contains(t, got.stdout, "broken", "node's own data")
	if got := n.waiter("plugins", "info", "fils"); got.code == 0 || !strings.Contains(got.stderr, "files") {
		t.Errorf("no such plugin: %d %s", got.code, got.stderr)
	}
	if n.actors()["plugins/files"].Kind != "plugin" {
		t.Error("the tree does not show the plugin")
	}
}
