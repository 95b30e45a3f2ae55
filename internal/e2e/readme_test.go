package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"homeagent/providers/providertest"
)

// byCI are the commands of the README that CI itself runs.
var byCI = map[string]bool{"go test ./...": true, ".ci/run": true, "just --list": true}

// TestReadmeCommandLines runs every command line of the README: a line that this test does not know fails it.
func TestReadmeCommandLines(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	n, v := newNode(t), newVendor(t)
	n.start()
	ran := 0
	for _, line := range shellLines(string(readme)) {
		ran++
		args, isWaiter := strings.CutPrefix(line, "go run ./cmd/waiter ")
		switch {
		case byCI[line]:
		case line == "go run ./cmd/homed": // the node that answers here
		case !isWaiter:
			t.Errorf("the README has a command that nothing runs: %s", line)
		case args == "chat":
			contains(t, n.waiterIn("My sister Lena is allergic to walnuts.\n/exit\n", "chat").must(t).stdout, "No model is configured")
			contains(t, n.waiterIn("What did I tell you about Lena?\n/exit\n", "chat").must(t).stdout, "you: My sister Lena is allergic to walnuts.")
		case args == "tree -w":
			contains(t, n.waiter("tree").must(t).stdout, "agents", "scheduler") // once; -w goes on until Ctrl-C
		case args == "providers add ollama":
			// A server of that name may or may not run on this machine; either way it is looked for here and nowhere else.
			if r := n.waiterIn("\n", words(args)...); r.code != 0 && !strings.Contains(r.stderr, "answers on this machine") && !strings.Contains(r.stdout, "found on this machine") {
				t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
			}
		case strings.HasPrefix(args, "providers add "):
			fields := strings.Fields(regexp.MustCompile(`--url \S+`).ReplaceAllString(args, "--url "+v.URL()))
			contains(t, n.waiterIn(secretKey+"\n", append(fields, "--key-stdin")...).must(t).stdout, "works: large answered")
			v.plays(providertest.Step{Text: []string{"It is late."}})
		case strings.HasPrefix(args, "send "), args == "stop":
			n.waiter(words(args)...).must(t)
		default:
			t.Errorf("the README has a verb that nothing runs: %s", line)
		}
	}
	if ran < 8 {
		t.Errorf("the README has %d commands", ran)
	}
}

// shellLines are the command lines in the README's sh blocks and in its running text.
func shellLines(readme string) []string {
	var out []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(readme, -1) {
		for _, line := range strings.Split(strings.TrimSpace(block[1]), "\n") {
			line, _, _ = strings.Cut(line, " #")
			out = append(out, strings.TrimSpace(line))
		}
	}
	for _, m := range regexp.MustCompile("`(go run [^`]+)`").FindAllStringSubmatch(readme, -1) {
		out = append(out, m[1])
	}
	return out
}

// words splits a command line as a shell does, double quotes only.
func words(line string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`"([^"]*)"|(\S+)`).FindAllStringSubmatch(line, -1) {
		out = append(out, m[1]+m[2])
	}
	return out
}
