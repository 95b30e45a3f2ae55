package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"homeagent/messages/api"
	"homeagent/providers/providertest"
)

// TestBadInput goes through what makes no sense: each is refused with a status, a code and a hint, and nothing of it is
// kept.
func TestBadInput(t *testing.T) {
	n, _ := withVendor(t, providertest.Step{Text: []string{"Well."}})
	timer := func(fields string) string { return `{"text":"x",` + fields + `}` }
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		code               string
	}{
		"deadline in the past":  {"POST", "inputs", `{"text":"a","deadline":"2020-01-01T00:00:00Z"}`, 400, "bad_deadline"},
		"deadline at year 0":    {"POST", "inputs", `{"text":"a","deadline":"0001-01-01T00:00:00Z"}`, 400, ""},
		"deadline far away":     {"POST", "inputs", `{"text":"a","deadline":"9999999-01-01T00:00:00Z"}`, 400, "malformed"},
		"deadline is no time":   {"POST", "inputs", `{"text":"a","deadline":"soon"}`, 400, "malformed"},
		"level L9":              {"POST", "inputs", `{"text":"a","level":"L9"}`, 400, "malformed"},
		"level is huge":         {"POST", "inputs", `{"text":"a","level":1e99}`, 400, "malformed"},
		"negative wait":         {"POST", "inputs", `{"text":"a","wait":true,"wait_ms":-1}`, 400, "malformed"},
		"huge wait":             {"POST", "inputs", `{"text":"a","wait":true,"wait_ms":9223372036854775807}`, 400, "malformed"},
		"wait beyond numbers":   {"POST", "inputs", `{"text":"a","wait":true,"wait_ms":1e400}`, 400, "malformed"},
		"1 MB of text":          {"POST", "inputs", `{"text":"` + strings.Repeat("a", 1<<20) + `"}`, 413, "too_large"},
		"unknown channel":       {"POST", "inputs", `{"text":"a","channel":"fax"}`, 404, "unknown_channel"},
		"key is huge":           {"POST", "inputs", `{"text":"a","idempotency_key":"` + strings.Repeat("k", 1<<16) + `"}`, 400, ""},
		"stop of no agent":      {"POST", "stop", `{"agent":"nobody"}`, 404, "unknown_agent"},
		"resume of no frame":    {"POST", "actors/agents/main/turn/01ARZ3NDEKTSV4RRFFQ69G5FAV/resume", "", 404, "unknown_actor"},
		"promotion of nothing":  {"POST", "scheduler/01ARZ3NDEKTSV4RRFFQ69G5FAV/promote", "", 404, "unknown_input"},
		"cancel of nothing":     {"POST", "scheduler/01ARZ3NDEKTSV4RRFFQ69G5FAV/cancel", "", 404, "unknown_input"},
		"approval of nothing":   {"POST", "approvals/ap-nothing/allow", `{"hash":"00"}`, 404, "unknown_approval"},
		"cron of words":         {"POST", "timers", timer(`"cron":"every full moon"`), 400, ""},
		"cron of three":         {"POST", "timers", timer(`"cron":"* * *"`), 400, ""},
		"cron minute 61":        {"POST", "timers", timer(`"cron":"61 * * * *"`), 400, ""},
		"cron 30 February":      {"POST", "timers", timer(`"cron":"0 0 30 2 *"`), 400, ""},
		"cron of a bomb":        {"POST", "timers", timer(`"cron":"` + strings.Repeat("*,", 1<<15) + `* * * * *"`), 400, ""},
		"cron with a zone":      {"POST", "timers", timer(`"cron":"TZ=../../etc/passwd * * * * *"`), 400, ""},
		"negative interval":     {"POST", "timers", timer(`"every":"-5m"`), 400, ""},
		"no interval":           {"POST", "timers", timer(`"every":"0s"`), 400, ""},
		"huge interval":         {"POST", "timers", timer(`"every":"9999999999999h"`), 400, ""},
		"timer in the past":     {"POST", "timers", timer(`"at":"2020-01-01T00:00:00Z"`), 400, ""},
		"negative delay":        {"POST", "timers", timer(`"in":"-1s"`), 400, ""},
		"timer in no zone":      {"POST", "timers", timer(`"cron":"0 8 * * *","zone":"Mars/Olympus"`), 404, "unknown_zone"},
		"negative tool timeout": {"PUT", "config/core.agent.tool_timeout", `{"value":"-1s"}`, 400, "bad_value"},
		"huge tool timeout":     {"PUT", "config/core.agent.tool_timeout", `{"value":"999999h"}`, 400, "bad_value"},
		"timeout of words":      {"PUT", "config/core.agent.tool_timeout", `{"value":"soon"}`, 400, "bad_value"},
		"negative turn":         {"PUT", "config/core.agent.turn_deadline", `{"value":"-30m"}`, 400, "bad_value"},
		"huge turn":             {"PUT", "config/core.agent.turn_deadline", `{"value":"99999d"}`, 400, "bad_value"},
		"negative queue":        {"PUT", "config/core.agent.queue_limit", `{"value":-1}`, 400, "bad_value"},
		"negative cooldown":     {"PUT", "config/core.scheduler.cooldown", `{"value":"-2s"}`, 400, "bad_value"},
		"silence of nothing":    {"PUT", "config/core.llm.sources.scripted.timeout_idle", `{"value":"0s"}`, 400, "bad_value"},
	} {
		t.Run(name, func(t *testing.T) {
			res := n.http(t, c.method, "/api/v1/"+c.path, c.body, n.auth())
			defer res.Body.Close()
			b, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			var no api.Error
			if err := json.Unmarshal(b, &no); err != nil || res.StatusCode != c.status || c.code != "" && no.Code != c.code || no.Message == "" {
				t.Errorf("%s %s %v", res.Status, b, err)
			}
		})
	}
	for range 2 {
		contains(t, n.waiter("stop").must(t).stdout, "nothing runs or waits")
	}
	if r := n.waiter("send", "x", "--level", "L9"); r.code != 2 {
		t.Errorf("level L9: exit %d %s", r.code, r.stderr)
	}
	s, err := n.dial().Status(bounded(t))
	if err != nil || s.Ledger.Open != 0 || s.Ledger.Accepted != 0 || len(n.timers()) != 0 {
		t.Errorf("something was kept: %+v %v, timers %v", s.Ledger, err, n.timers())
	}
	// The most that is taken is taken whole.
	n.waiter("config", "set", "core.llm.sources.scripted.context_window", "400000").must(t)
	large := strings.Repeat("word ", 60_000)
	if got := n.ask(large); got.End != "answered" || got.Content[0].Text != large {
		t.Errorf("300 kB end as %s, %d bytes of them", got.End, len(got.Content[0].Text))
	}
}

// TestTenThousandInputs sends as fast as it can: each input is accepted, and then ends, or refused with the time after
// which to try again.
func TestTenThousandInputs(t *testing.T) {
	const all, senders = 10_000, 16
	n, v := withVendor(t)
	v.Serve(func(providertest.Question) providertest.Step { return providertest.Step{Text: []string{"Yes."}} })
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: senders}}
	t.Cleanup(web.CloseIdleConnections)
	url, header := "http://"+n.state().HTTP+"/api/v1/inputs", n.auth()
	var mu sync.Mutex
	var ids []string
	refused := 0
	offer := func(i int) error {
		body := fmt.Sprintf(`{"text":"input %d","channel":"api","mode":"queue","conversation":"c%d"}`, i, i%50)
		q, err := http.NewRequestWithContext(bounded(t), "POST", url, strings.NewReader(body))
		if err != nil {
			return err
		}
		q.Header = header.Clone()
		res, err := web.Do(q)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		switch res.StatusCode {
		case 202:
			var got api.Submitted
			if err := json.Unmarshal(b, &got); err != nil || got.InputID == "" {
				return fmt.Errorf("%s: %w", b, err)
			}
			ids = append(ids, got.InputID)
		case 429:
			if s := res.Header.Get("Retry-After"); s == "" || s == "0" {
				return fmt.Errorf("refused without a time: %q %s", s, b)
			}
			refused++
		default:
			return fmt.Errorf("%s %s", res.Status, b)
		}
		return nil
	}
	began := time.Now()
	var group sync.WaitGroup
	for s := range senders {
		group.Go(func() {
			for i := s; i < all; i += senders {
				if err := offer(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	t.Logf("%d accepted, %d refused in %s", len(ids), refused, time.Since(began).Round(time.Millisecond))
	if len(ids)+refused != all || refused == 0 || len(ids) < 256 {
		t.Errorf("%d accepted, %d refused of %d", len(ids), refused, all)
	}
	tape := n.tapeOf("", nil, api.EventTask)
	seen := map[string]bool{}
	for _, id := range ids {
		if seen[id] {
			t.Errorf("%s was given twice", id)
		}
		seen[id] = true
		got := n.input(id)
		if got.State != "ended" {
			tape.change(id, "ended")
			got = n.input(id)
		}
		if got.End != "answered" {
			t.Fatalf("%s ended as %+v", id, got)
		}
	}
	s, err := n.dial().Status(bounded(t))
	if err != nil || s.Ledger.Open != 0 || s.Ledger.Accepted != uint64(len(ids)) || s.Ledger.Ended != uint64(len(ids)) {
		t.Errorf("the ledger counts %+v %v, not %d", s.Ledger, err, len(ids))
	}
}

// TestFlippedJournalRecord flips one byte in the journal of a task that runs: the node names the damage, keeps a copy and
// does not start; told to go on, it has all the rest, and the task ends.
func TestFlippedJournalRecord(t *testing.T) {
	n, v := withVendor(t,
		providertest.Step{Match: "walnuts", Text: []string{"Noted about ", "walnuts."}},
		providertest.Step{Match: "log it", AfterTool: &no, Tools: []providertest.Tool{tool("files_append", `{"path":"log.txt","content":"mark-of-the-journal\n"}`)}},
		providertest.Step{Match: "log it", Text: []string{"Log", "ged."}, Hold: providertest.Hold{Middle: "gate"}},
	)
	early := n.submit(api.Submit{Text: "My sister Lena is allergic to walnuts.", Wait: true}).InputID
	task := n.say("log it")
	v.held("gate")
	n.kill()
	v.Open("gate")
	db := filepath.Join(n.data, "store", "db")
	var damaged string
	for _, name := range files(t, n.data, "*.mem") {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.LastIndex(b, []byte("mark-of-the-journal")); i >= 0 {
			b[i+3] ^= 0x20
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
			damaged = filepath.Base(name)
		}
	}
	if damaged == "" {
		t.Fatal("no write-ahead file holds the record")
	}
	before := snapshot(t, db)
	contains(t, n.refuses(), damaged, "--salvage")
	if kept, err := filepath.Glob(filepath.Join(n.data, "store", "aside", "*")); err != nil || len(kept) == 0 {
		t.Errorf("no copy was kept: %v %v", kept, err)
	}
	if snapshot(t, db) != before {
		t.Error("the files changed")
	}
	n.args = []string{"--salvage"}
	n.start()
	contains(t, n.output.String(), "level=WARN", damaged)
	if got := n.input(early); got.End != "answered" || got.Text != "Noted about walnuts." {
		t.Errorf("what was before the damage is %+v", got)
	}
	// What came after the damage may be gone; what is known of the task must come to an end.
	c := n.dial()
	if got, err := c.Input(bounded(t), task); err == nil {
		if got.State != "ended" {
			n.replay().change(task, "ended")
		}
		if n := strings.Count(n.file("log.txt"), "mark"); n > 2 {
			t.Errorf("the call was made %d times", n)
		}
	}
	if got := n.ask("more about walnuts"); got.End != "answered" {
		t.Errorf("afterwards: %+v", got)
	}
	n.stop()
	n.args = nil
	n.start()
}
