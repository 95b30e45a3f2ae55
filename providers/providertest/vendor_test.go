package providertest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"homeagent/providers/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, name string) *providertest.Vendor {
	t.Helper()
	s, err := providertest.LoadScript(filepath.Join("testdata", "scripts", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := providertest.Start("", s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

func post(t *testing.T, v *providertest.Vendor, text string, stream bool) (int, string) {
	t.Helper()
	body := fmt.Sprintf(`{"model":"m","stream":%v,"messages":[{"role":"user","content":%q}]}`, stream, text)
	resp, err := http.Post(v.URL()+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, string(b) + " " + err.Error()
	}
	return resp.StatusCode, string(b)
}

func TestScripts(t *testing.T) {
	files, err := os.ReadDir("testdata/scripts")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if _, err := providertest.LoadScript(filepath.Join("testdata/scripts", f.Name())); err != nil {
			t.Errorf("%s: %v", f.Name(), err)
		}
	}
	for _, bad := range []string{`{}`, `{"steps":[]}`, `{"steps":[{"txt":["a"]}]}`, `{"steps":[{"cut":"sideways"}]}`, `{"steps":[{"delay":"soon"}]}`, `[`} {
		if _, err := providertest.ParseScript([]byte(bad)); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

func TestAnswers(t *testing.T) {
	v := start(t, "text")
	status, body := post(t, v, "hello you", true)
	var text string
	in := bufio.NewScanner(strings.NewReader(body))
	for in.Scan() {
		var c struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if data, ok := strings.CutPrefix(in.Text(), "data: {"); ok {
			if err := json.Unmarshal([]byte("{"+data), &c); err != nil {
				t.Fatal(err)
			}
			for _, x := range c.Choices {
				text += x.Delta.Content
			}
		}
	}
	if status != 200 || text != "Good morning." || !strings.HasSuffix(body, "data: [DONE]\n\n") || !strings.Contains(body, `"prompt_tokens":12`) {
		t.Errorf("%d %s", status, body)
	}
	if _, body := post(t, v, "hello you", false); !strings.Contains(body, `"content":"Good morning."`) || !strings.Contains(body, `"finish_reason":"stop"`) {
		t.Errorf("%s", body)
	}
	if reqs := v.Requests(); len(reqs) != 2 || reqs[1].N != 2 || reqs[1].Step != 0 || !strings.Contains(string(reqs[1].Body), "hello you") {
		t.Errorf("%+v", reqs)
	}
	v.Load(providertest.Script{Steps: []providertest.Step{{Match: "nothing fits", Text: []string{"x"}}}})
	if status, body := post(t, v, "hello", true); status != 500 || !strings.Contains(body, "no step of the script fits") {
		t.Errorf("%d %s", status, body)
	}
}

func TestTimesAndCuts(t *testing.T) {
	v := start(t, "errors")
	if status, _ := post(t, v, "once please", true); status != 503 {
		t.Errorf("first: %d", status)
	}
	if status, body := post(t, v, "once please", true); status != 200 || !strings.Contains(body, "fine") {
		t.Errorf("second: %d %s", status, body)
	}
	if _, body := post(t, v, "midway", true); !strings.Contains(body, `"error":{"message":"overloaded"`) || strings.Contains(body, "DONE") {
		t.Errorf("%s", body)
	}
	v = start(t, "cuts")
	for text, want := range map[string]string{"empty": "", "half": `{"con`, "reset": "reset by peer", "arguments": `"arguments":"{\"subj"}`} {
		if _, body := post(t, v, text, true); !strings.Contains(body, want) || strings.Contains(body, "DONE") || strings.Contains(body, `"finish_reason":"`) {
			t.Errorf("%s: %s", text, body)
		}
	}
}

// Another process opens gates and awaits events over HTTP.
func TestControl(t *testing.T) {
	v := start(t, "gates")
	control := strings.TrimSuffix(v.URL(), "/v1") + "/_control/"
	get := func(path string) string {
		t.Helper()
		resp, err := http.Get(control + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return string(b)
	}
	do := func(path, body string) int {
		t.Helper()
		resp, err := http.Post(control+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	done := make(chan string, 1)
	go func() {
		_, body := post(t, v, "tell a story", true)
		done <- body
	}()
	if e := get("await?kind=held&n=1"); !strings.Contains(e, `"gate":"story"`) {
		t.Errorf("%s", e)
	}
	select {
	case body := <-done:
		t.Fatalf("answered in front of a shut gate: %s", body)
	default:
	}
	do("open?gate=story", "")
	if body := <-done; !strings.Contains(body, "a time.") {
		t.Errorf("%s", body)
	}
	get("await?kind=finished&n=1")
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, v.URL()+"/chat/completions", strings.NewReader(`{"messages":[{"role":"user","content":"hang"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if _, err := v.Await(t.Context(), providertest.Received, 2); err == nil {
			cancel()
		}
	}()
	if _, err := http.DefaultClient.Do(req); err == nil {
		t.Error("a hanging step answered")
	}
	if e := get("await?kind=closed&n=1"); !strings.Contains(e, `"request":2`) {
		t.Errorf("%s", e)
	}
	if !strings.Contains(get("requests"), "tell a story") || !strings.Contains(get("events"), `"kind":"closed"`) {
		t.Error("records are missing")
	}
	if do("script", `{"steps":[{"text":["new"]}]}`) != http.StatusNoContent || do("script", `{}`) != http.StatusBadRequest {
		t.Error("loading a script")
	}
	if _, body := post(t, v, "x", false); !strings.Contains(body, "new") {
		t.Errorf("%s", body)
	}
	short, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	if _, err := v.Await(short, "closed", 9); err == nil {
		t.Error("an event that never was")
	}
	http.DefaultClient.CloseIdleConnections()
}
