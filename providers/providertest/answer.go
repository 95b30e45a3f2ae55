package providertest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"
)

// answer sends one step's answer.
type answer struct {
	v     *Vendor
	w     http.ResponseWriter
	r     *http.Request
	rc    *http.ResponseController
	n     int
	step  Step
	model string
	whole bool
}

func (a *answer) pass(gate string) bool { return a.v.pass(a.r.Context(), a.n, gate) }

func (a *answer) send(stream bool) {
	if a.step.Hang {
		<-a.r.Context().Done()
		return
	}
	if d := time.Duration(a.step.Delay); d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-a.r.Context().Done():
			return
		}
	}
	if !a.pass(a.step.Hold.Headers) {
		return
	}
	switch {
	case a.step.Body != "" || a.step.Status != 0 && a.step.Status != http.StatusOK:
		a.plain()
	case stream:
		a.whole = a.stream()
	default:
		a.document()
	}
}

func (a *answer) headers(contentType string) {
	a.w.Header().Set("Content-Type", contentType)
	for name, value := range a.step.Header {
		a.w.Header().Set(name, value)
	}
	status := a.step.Status
	if status == 0 {
		status = http.StatusOK
	}
	a.w.WriteHeader(status)
}

func (a *answer) plain() {
	a.headers("application/json")
	_, err := a.w.Write([]byte(a.step.Body))
	a.whole = err == nil
}

func (a *answer) finish() string {
	switch {
	case a.step.Finish != "":
		return a.step.Finish
	case len(a.step.Tools) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (a *answer) usage() map[string]int {
	u := a.step.Usage
	if u == nil {
		u = &Usage{In: 10, Out: 5}
	}
	return map[string]int{"prompt_tokens": u.In, "completion_tokens": u.Out, "total_tokens": u.In + u.Out}
}

func (a *answer) text() []string {
	out := a.step.Text
	for i := 1; i < a.step.Repeat; i++ {
		out = append(out[:len(out):len(out)], a.step.Text...)
	}
	return out
}

func (a *answer) document() {
	message := map[string]any{"role": "assistant", "content": nil}
	var text string
	for _, t := range a.text() {
		text += t
	}
	if text != "" {
		message["content"] = text
	}
	var calls []any
	for _, t := range a.step.Tools {
		calls = append(calls, map[string]any{"id": t.ID, "type": "function", "function": map[string]any{"name": t.Name, "arguments": string(t.Args)}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	a.headers("application/json")
	err := json.NewEncoder(a.w).Encode(map[string]any{
		"id": a.id(), "object": "chat.completion", "created": time.Now().Unix(), "model": a.model, "usage": a.usage(),
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": a.finish()}},
	})
	a.whole = err == nil
}

func (a *answer) id() string { return fmt.Sprintf("chatcmpl-%d", a.n) }

// chunk sends one event and flushes it.
func (a *answer) chunk(delta map[string]any, finish any) bool {
	b, err := json.Marshal(map[string]any{
		"id": a.id(), "object": "chat.completion.chunk", "created": 1700000000, "model": a.model,
		"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}, "usage": nil,
	})
	return err == nil && a.event(b)
}

func (a *answer) event(data []byte) bool {
	if _, err := fmt.Fprintf(a.w, "data: %s\n\n", data); err != nil {
		return false
	}
	return a.rc.Flush() == nil
}

// stream gives whether all was sent.
func (a *answer) stream() bool {
	a.headers("text/event-stream")
	if a.rc.Flush() != nil {
		return false
	}
	a.v.happened(Event{Kind: Begun, Request: a.n})
	if a.step.Cut == "empty" || !a.pass(a.step.Hold.Start) || !a.chunk(map[string]any{"role": "assistant", "content": ""}, nil) {
		return false
	}
	for _, t := range a.step.Reasoning {
		if !a.chunk(map[string]any{"reasoning_content": t}, nil) {
			return false
		}
	}
	for i, t := range a.text() {
		if !a.chunk(map[string]any{"content": t}, nil) {
			return false
		}
		if i == 0 {
			a.v.happened(Event{Kind: PieceSent, Request: a.n})
			if !a.pass(a.step.Hold.Middle) {
				return false
			}
		}
	}
	if a.step.Cut != "" && a.step.Cut != "args" {
		a.cut()
		return false
	}
	if !a.tools() || !a.pass(a.step.Hold.End) {
		return false
	}
	if e := a.step.Error; e != nil {
		b, err := json.Marshal(map[string]any{"error": e})
		return err == nil && a.event(b)
	}
	if !a.chunk(map[string]any{}, a.finish()) {
		return false
	}
	b, err := json.Marshal(map[string]any{"id": a.id(), "object": "chat.completion.chunk", "model": a.model, "choices": []any{}, "usage": a.usage()})
	return err == nil && a.event(b) && a.event([]byte("[DONE]"))
}

func (a *answer) cut() {
	switch a.step.Cut {
	case "event":
		_, _ = a.w.Write([]byte(`data: {"id":"x","choices":[{"index":0,"delta":{"con`))
		_ = a.rc.Flush()
	case "reset":
		conn, _, err := a.rc.Hijack()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
}

// tools sends the calls with their arguments interleaved in pieces, as
// parallel calls come.
func (a *answer) tools() bool {
	rest := make([]string, len(a.step.Tools))
	for i, t := range a.step.Tools {
		call := map[string]any{"index": i, "id": t.ID, "type": "function", "function": map[string]any{"name": t.Name, "arguments": ""}}
		if !a.chunk(map[string]any{"tool_calls": []any{call}}, nil) {
			return false
		}
		rest[i] = string(t.Args)
	}
	const piece = 6
	for more := true; more; {
		more = false
		for i := range rest {
			if rest[i] == "" {
				continue
			}
			n := min(piece, len(rest[i]))
			call := map[string]any{"index": i, "function": map[string]any{"arguments": rest[i][:n]}}
			if !a.chunk(map[string]any{"tool_calls": []any{call}}, nil) {
				return false
			}
			rest[i] = rest[i][n:]
			more = more || rest[i] != ""
			if a.step.Cut == "args" {
				return false
			}
		}
	}
	return true
}
