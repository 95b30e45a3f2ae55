package providertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"homeagent/messages"
	"homeagent/providers"
)

// Recording is what a server sent and what must come of it.
type Recording struct {
	// Name for people.
	Name string
	// Status and ContentType of the answer.
	Status      int
	ContentType string
	// Header has further headers; may be nil.
	Header map[string]string
	// Body as it was sent.
	Body []byte
	// Stream tells that the body is a stream of events.
	Stream bool
	// Want is the unified result.
	Want Want
}

// Want is a unified result. Absent means empty, except in Usage, where only the
// named figures are compared.
type Want struct {
	Text      string           `json:"text"`
	Reasoning string           `json:"reasoning"`
	Tools     []WantTool       `json:"tool_calls"`
	Finish    string           `json:"finish"`
	Usage     map[string]any   `json:"usage"`
	Error     *WantError       `json:"error"`
	Replay    *json.RawMessage `json:"replay"`
}

// WantTool is an expected call. An ID of null means that the node makes one.
type WantTool struct {
	ID   *string `json:"id"`
	Name string  `json:"name"`
	Args any     `json:"args"`
	// Invalid is the reason why it must not run.
	Invalid string `json:"invalid"`
}

// WantError is an expected failure.
type WantError struct {
	Kind   string `json:"kind"`
	Code   any    `json:"code"`
	Status int    `json:"status"`
}

// LoadRecordings reads expected.jsonl in dir and the files it names whose path
// starts with one of the families. Lines are {file, expected}. Files that end
// in .ndjson are event payloads, one a line; .sse are streams; .json bodies.
func LoadRecordings(dir string, families ...string) ([]Recording, error) {
	list, err := os.ReadFile(filepath.Join(dir, "expected.jsonl"))
	if err != nil {
		return nil, err
	}
	var out []Recording
	in := bufio.NewScanner(bytes.NewReader(list))
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var line struct {
			File     string `json:"file"`
			Expected Want   `json:"expected"`
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("expected.jsonl: %w", err)
		}
		for _, family := range families {
			if !strings.HasPrefix(line.File, family) {
				continue
			}
			body, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(line.File)))
			if err != nil {
				return nil, err
			}
			out = append(out, recording(line.File, body, line.Expected))
			break
		}
	}
	return out, in.Err()
}

func recording(name string, body []byte, want Want) Recording {
	r := Recording{Name: name, Status: 200, ContentType: "text/event-stream", Body: body, Stream: true, Want: want}
	switch filepath.Ext(name) {
	case ".ndjson":
		var b bytes.Buffer
		for line := range bytes.Lines(body) {
			if line = bytes.TrimSpace(line); len(line) > 0 {
				fmt.Fprintf(&b, "data: %s\n\n", line)
			}
		}
		b.WriteString("data: [DONE]\n\n")
		r.Body = b.Bytes()
	case ".json":
		r.ContentType, r.Stream = "application/json", false
		if strings.Contains(filepath.Base(name), "err-") && want.Error != nil {
			r.Status = want.Error.Status
		}
	}
	return r
}

// Compare tells how a result differs from what is wanted; empty means that it
// does not.
func (w Want) Compare(res *messages.CompletionResult, err error) (diffs []string) {
	diff := func(what string, got, want any) {
		if !reflect.DeepEqual(got, want) {
			diffs = append(diffs, fmt.Sprintf("%s: got %#v, want %#v", what, got, want))
		}
	}
	diff("text", res.GetText(), w.Text)
	diff("reasoning", res.GetReasoning(), w.Reasoning)
	finish := w.Finish
	if finish == "" && w.Error != nil {
		finish = "error"
	}
	diff("finish", strings.ToLower(strings.TrimPrefix(res.GetFinish().String(), "FINISH_")), finish)
	diffs = append(diffs, w.compareTools(res)...)
	diffs = append(diffs, w.compareUsage(res)...)
	if (err != nil) != (w.Error != nil) {
		return append(diffs, fmt.Sprintf("error: got %v, want %+v", err, w.Error))
	}
	if w.Error != nil {
		f := providers.AsFailure(err)
		diff("error kind", providers.KindName(f.Kind), w.Error.Kind)
		if w.Error.Code != nil {
			diff("error code", f.Code, fmt.Sprint(w.Error.Code))
		}
		if w.Error.Status != 0 {
			diff("error status", f.Status, w.Error.Status)
		}
		if f.Message == "" {
			diffs = append(diffs, "error without a message")
		}
	}
	if w.Replay != nil && len(res.GetReplay()) == 0 {
		diffs = append(diffs, "no replay material")
	}
	return diffs
}

func (w Want) compareTools(res *messages.CompletionResult) (diffs []string) {
	if len(res.GetCalls()) != len(w.Tools) {
		return []string{fmt.Sprintf("%d tool calls %v, want %d", len(res.GetCalls()), res.GetCalls(), len(w.Tools))}
	}
	seen := make(map[string]bool)
	for i, c := range res.GetCalls() {
		want := w.Tools[i]
		var args any
		_ = json.Unmarshal(c.GetArgumentsJson(), &args)
		switch {
		case c.GetName() != want.Name, want.ID != nil && c.GetVendorId() != *want.ID,
			want.Invalid == "" && !reflect.DeepEqual(args, want.Args), c.GetInvalid() != want.Invalid:
			diffs = append(diffs, fmt.Sprintf("tool call %d: got %v, want %+v", i, c, want))
		case c.GetVendorId() == "" || seen[c.GetVendorId()]:
			diffs = append(diffs, fmt.Sprintf("tool call %d has no id of its own", i))
		}
		seen[c.GetVendorId()] = true
	}
	return diffs
}

func (w Want) compareUsage(res *messages.CompletionResult) (diffs []string) {
	u := res.GetUsage()
	got := map[string]int64{
		"in": u.GetInput(), "out": u.GetOutput(), "cached": u.GetCached(), "reasoning": u.GetReasoning(),
		"cache_write": u.GetCacheWrite(), "total": u.GetTotal(), "prompt_total": u.GetPromptTotal(),
	}
	for name, v := range w.Usage {
		want, ok := v.(float64)
		if !ok {
			continue
		}
		if _, noted := w.Usage["note"]; noted && name == "out" {
			// A server that leaves reasoning out of its count: the sum tells.
			want, _ = w.Usage["total"].(float64)
			in, _ := w.Usage["in"].(float64)
			want -= in
		}
		if _, known := got[name]; !known {
			diffs = append(diffs, "usage has no figure "+name)
		} else if got[name] != int64(want) {
			diffs = append(diffs, fmt.Sprintf("usage %s: got %d, want %v", name, got[name], want))
		}
	}
	return diffs
}
