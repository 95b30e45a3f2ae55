package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"homeagent/messages/api"
)

// TestFirstConversation is what a person does first: say something, and ask about it on another day.
func TestFirstConversation(t *testing.T) {
	n := newNode(t)
	n.start()
	got := n.waiter("chat", "My sister Lena is allergic to walnuts.").must(t)
	contains(t, got.stdout, "No model is configured")
	contains(t, n.waiter("chat", "我弟弟小明住在上海。").must(t).stdout, "目前没有配置模型")
	n.stop()
	n.start()
	contains(t, n.waiter("chat", "What did I tell you about Lena?").must(t).stdout, "allergic to walnuts")
	contains(t, n.waiter("chat", "小明住在哪里？").must(t).stdout, "我弟弟小明住在上海")
	none := n.waiter("chat", "What about zebras?").must(t).stdout
	contains(t, none, "I remember nothing about it")
	if strings.Contains(none, "walnuts") {
		t.Fatalf("walnuts came up for zebras:\n%s", none)
	}
}

// TestReadmeCommands does what the README tells a newcomer to do.
func TestReadmeCommands(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(readme), "go run ./cmd/homed ", "go run ./cmd/waiter chat")
	if testing.Short() {
		t.Skip("go run links both commands anew")
	}
	n := newNode(t)
	n.start()
	cmd := exec.CommandContext(bounded(t), "go", "run", "./cmd/waiter", "chat")
	cmd.Dir, cmd.Env = "../..", append(cleanEnv(), "HOMED_DATA="+n.data, "CGO_ENABLED=0")
	cmd.Stdin = strings.NewReader("My sister Lena is allergic to walnuts.\n/status\n/nosuch\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	contains(t, string(out), "No model is configured", "ready, scheduler ok", "there is no /nosuch")
	contains(t, n.waiterIn("What did I tell you about Lena?\n/exit\n", "chat").must(t).stdout, "you: My sister Lena is allergic to walnuts.")
}

// TestBareHomed runs homed without a verb; the folder comes by the environment and is made, and Ctrl-C ends it in order.
func TestBareHomed(t *testing.T) {
	cmd := exec.CommandContext(bounded(t), filepath.Join(bin, "homed"), "--listen", "127.0.0.1:0")
	cmd.Env = append(cleanEnv(), "HOMED_DATA="+shortDir(t))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "ready http://127.0.0.1:") {
		t.Errorf("it said %q, %v", line, err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v after Ctrl-C", err)
	}
}

// TestTreeShowsTheTable compares the live tree with the table that the build prints.
func TestTreeShowsTheTable(t *testing.T) {
	table := command(t, "", "homed", "version", "--graph").must(t).stdout
	n := newNode(t)
	n.start()
	actors := n.actors()
	row := regexp.MustCompile(`(?m)^(\d+)\s+(\S+)\s+(\S+)(?: \((\d+)\))?\s`)
	rows := row.FindAllStringSubmatch(table, -1)
	if len(rows) < 12 {
		t.Fatalf("the table has %d rows:\n%s", len(rows), table)
	}
	for _, r := range rows {
		prefix, all := strings.CutSuffix(r[3], "*")
		found := 0
		for path, a := range actors {
			if path == r[3] || all && strings.HasPrefix(path, prefix) {
				found++
				if a.Kind != r[2] || !a.System {
					t.Errorf("%s is shown as kind %s, system %v", path, a.Kind, a.System)
				}
			}
		}
		if found == 0 || all && r[4] != "7" || all && found != 7 {
			t.Errorf("%s: %d actors in the tree", r[3], found)
		}
	}
	for _, path := range []string{"agents/main", "agents/main/scheduler", "providers/source/offline"} {
		if _, ok := actors[path]; !ok {
			t.Errorf("%s is not in the tree", path)
		}
	}
	n.ask("hello")
	after := n.actors()
	for _, path := range []string{"agents/main/scheduler", "ledger", "channels", "providers", "memory"} {
		if after[path].Handled <= actors[path].Handled {
			t.Errorf("%s handled %d messages before a turn and %d after it", path, actors[path].Handled, after[path].Handled)
		}
	}
	human := n.waiter("tree").must(t).stdout
	contains(t, human, "homed@", "├─", "scheduler", "source/offline")
	digest := regexp.MustCompile(`digest\s+[0-9a-f]{16}`)
	if digest.FindString(table) == "" || digest.FindString(table) != digest.FindString(command(t, "", "homed", "version", "--graph").stdout) {
		t.Errorf("the digest of the table is not stable:\n%s", table)
	}
}

// TestToolsOffline runs tools by name without a model.
func TestToolsOffline(t *testing.T) {
	n := newNode(t)
	n.start()
	const fact = `/tool memory_commit {"facts":[{"subject":"Lena","predicate":"lives in","object":"Turin"}]}`
	contains(t, n.waiter("chat", fact).must(t).stdout, "Result of memory_commit", `"stored":1`)
	contains(t, n.waiter("memory", "facts", "Lena").must(t).stdout, "lives in", "Turin")
	contains(t, n.waiter("chat", "/tools").must(t).stdout, "memory_recall", "time_now", "resident_agents")
	contains(t, n.waiterIn("/tool time_now\n", "chat").must(t).stdout, `"utc":`)
	contains(t, n.waiterIn("/tool nosuch\n", "chat").must(t).stdout, "There is no tool named nosuch")
	if got := n.ask("/tool memory_commit {"); got.End != "answered" || !strings.Contains(got.Text, "must be a JSON object") {
		t.Errorf("broken arguments: %+v", got)
	}
	n.stop()
	n.start()
	contains(t, n.waiter("memory", "facts", "Lena").must(t).stdout, "Turin")
	contains(t, n.waiter("chat", "Where does Lena live?").must(t).stdout, "Turin")
}

// TestResident creates a resident, hears its report, and ends it.
func TestResident(t *testing.T) {
	n := newNode(t)
	n.start()
	tape := n.tape("")
	const create = `/tool resident_agents {"action":"create","id":"cook","task_prompt":"Plan the meals of the week."}`
	made := n.ask(create)
	contains(t, made.Text, "Result of resident_agents", "cook")
	const path = "agents/main/resident/cook"
	report := tape.await("a report to the parent", func(e *api.Event) bool {
		return e.Type == "raw_input" && e.Agent == "main" && strings.Contains(e.Text, "cook")
	})
	tape.ended(report.TaskID, "answered")
	actors := n.actors()
	for _, p := range []string{path, path + "/scheduler"} {
		if _, ok := actors[p]; !ok {
			t.Fatalf("%s is not in the tree", p)
		}
	}
	if !slices.ContainsFunc(actors["agents/main"].Children, func(a api.Actor) bool { return a.Path == path }) {
		t.Fatalf("the resident is not under its parent: %+v", actors["agents/main"])
	}
	contains(t, n.waiter("agents").must(t).stdout, "main/resident/cook", "Plan the meals")
	contains(t, n.waiter("agents", "send", "cook", "--wait", "/tool agent_note {\"text\":\"soup on Monday\"}").must(t).stdout, "agent_note")
	contains(t, n.waiter("agents", "inspect", "cook").must(t).stdout, "soup on Monday")

	n.kill()
	n.start()
	if _, ok := n.actors()[path+"/scheduler"]; !ok {
		t.Fatal("the resident did not survive a restart")
	}
	contains(t, n.waiter("agents", "inspect", "cook").must(t).stdout, "Plan the meals")
	contains(t, n.ask(`/tool resident_agents {"action":"destroy","id":"cook"}`).Text, "Result of")
	for p := range n.actors() {
		if strings.HasPrefix(p, path) {
			t.Errorf("%s is still in the tree", p)
		}
	}
	if got := n.waiter("agents", "inspect", "cook"); got.code != 1 {
		t.Errorf("inspecting a resident that is gone: exit %d: %s", got.code, got.stderr)
	}
	n.stop()
	n.start()
	if _, ok := n.actors()[path]; ok {
		t.Error("the resident came back after a restart")
	}
}
