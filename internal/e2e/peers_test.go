package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"homeagent/configs"
	"homeagent/providers"
	"homeagent/providers/lua"
)

// peerFolder is where .ci/tools puts the programs that these tests speak with.
const peerFolder = "../../.ci/peers/node_modules"

// peerProgram gives the path of a script of an installed package, and node's. Where they are missing the test is skipped,
// or fails where every check has to run.
func peerProgram(t testing.TB, script string) (node, path string) {
	t.Helper()
	absent := t.Skipf
	if os.Getenv("HOMEAGENT_CI") != "" {
		absent = t.Fatalf
	}
	node, err := exec.LookPath("node")
	if err != nil {
		absent("node is not installed: %v", err)
	}
	path, err = filepath.Abs(filepath.Join(peerFolder, script))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		absent("run .ci/tools first: %v", err)
	}
	return node, path
}

// peer is a server made of a node package.
type peer struct {
	t testing.TB
	// url has no path.
	url    string
	output *tail
}

var listening = regexp.MustCompile(`https?://[0-9.a-z]+:\d+`)

// startPeer runs a script until the test ends. The server must tell its address on a line of its output, where it says
// "listening" or "running".
func startPeer(t testing.TB, script string, args ...string) *peer {
	t.Helper()
	node, path := peerProgram(t, script)
	cmd := exec.Command(node, append([]string{path}, args...)...)
	cmd.Env = cleanEnv()
	r, w := io.Pipe()
	p := &peer{t: t, output: &tail{}}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = cmd.Wait() // it is killed
		_ = w.Close()
	}()
	found := make(chan string, 1)
	go p.read(r, found)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-over
		if t.Failed() {
			t.Logf("%s said:\n%s", script, p.output)
		}
	})
	select {
	case p.url = <-found:
	case <-bounded(t).Done():
	}
	if p.url == "" {
		t.Fatalf("%s does not say where it listens:\n%s", script, p.output)
	}
	return p
}

func (p *peer) read(r io.Reader, found chan<- string) {
	defer close(found)
	told := false
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		_, _ = io.WriteString(p.output, sc.Text()+"\n")
		if at := listening.FindString(sc.Text()); at != "" && !told {
			told = true
			found <- at
		}
	}
	_, _ = io.Copy(io.Discard, r)
}

// vendors starts the server that speaks the forms of many vendors, with small pieces.
func vendors(t testing.TB) *peer {
	t.Helper()
	return startPeer(t, "@copilotkit/aimock/dist/cli.js", "--port", "0", "--chunk-size", "3", "--fixtures", "testdata/peers/vendor.json")
}

// seen are the requests that the server has answered so far.
func (p *peer) seen() []struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body"`
} {
	p.t.Helper()
	res, err := http.Get(p.url + "/v1/_requests")
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	var out []struct {
		Method string          `json:"method"`
		Path   string          `json:"path"`
		Body   json.RawMessage `json:"body"`
	}
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		p.t.Fatal(err)
	}
	return out
}

// engineClient is a client over the built-in adapters, the path that calls of a node take.
func engineClient(t testing.TB) *providers.Client {
	t.Helper()
	engine, err := lua.New("", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := providers.NewClient(providers.Options{Adapters: engine})
	t.Cleanup(func() {
		c.Close()
		engine.Close()
	})
	return c
}

// secretly gives a key to a source.
func secretly(key string) func() configs.Secret {
	return func() configs.Secret { return configs.NewSecret(key) }
}

// visit is a client of testdata/peers at work against a node.
type visit struct {
	name string
	// steps of it to run, in order.
	steps string
	// stdin of the script; nil is empty.
	stdin io.Reader
}

// replies is what a script wrote of its steps: by the name of the step, one line of JSON.
type replies map[string]map[string]any

// run runs a script against a node.
func (n *node) run(s visit) replies {
	n.t.Helper()
	node, modules := peerProgram(n.t, "")
	source, err := os.ReadFile(filepath.Join("testdata/peers", s.name))
	if err != nil {
		n.t.Fatal(err)
	}
	// A script finds packages only above itself; one without a file, above the folder that it runs in.
	cmd := exec.CommandContext(bounded(n.t), node, "--input-type=module", "-e", string(source))
	cmd.Dir, cmd.Stdin = filepath.Dir(modules), s.stdin
	token := strings.TrimPrefix(n.auth().Get("Authorization"), "Bearer ")
	cmd.Env = append(cleanEnv(), "PEER_BASE=http://"+n.state().HTTP, "PEER_KEY="+token, "PEER_STEPS="+s.steps)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		n.t.Fatalf("%s %s: %v\n%s%s", s.name, s.steps, err, out, errs.String())
	}
	all := replies{}
	for line := range strings.Lines(string(out)) {
		var step map[string]any
		decodeJSON(n.t, line, &step)
		all[step["step"].(string)] = step
	}
	return all
}

// is checks fields of a step, given as names and values in turn.
func (h replies) is(t testing.TB, step string, want ...any) {
	t.Helper()
	got, ok := h[step]
	if !ok {
		t.Errorf("the step %s did not run", step)
	}
	for i := 0; i < len(want); i += 2 {
		if v := fmt.Sprint(got[want[i].(string)]); v != fmt.Sprint(want[i+1]) {
			t.Errorf("%s: %s is %v, want %v, in %v", step, want[i], v, want[i+1], got)
		}
	}
}
