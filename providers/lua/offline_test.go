package lua_test

import (
	"strings"
	"testing"

	"homeagent/messages"
	"homeagent/providers"
	"homeagent/providers/providertest"
)

func offline(t *testing.T, change func(*messages.CompletionRequest)) (*messages.CompletionResult, int) {
	t.Helper()
	c := providers.NewClient(providers.Options{Adapters: engine(t, "")})
	t.Cleanup(c.Close)
	req := providertest.Ask("what did I tell you about the boiler?")
	req.Tools = []*messages.ToolDef{
		{Name: "memory_commit", Description: "Keep a fact.", ParametersJson: []byte(`{"type":"object"}`)},
		{Name: "memory_recall", Description: "Look into memory."},
	}
	change(req)
	deltas := 0
	var hash string
	res, err := c.Stream(t.Context(), providers.Source{Name: "offline", Adapter: "offline"}, req, providers.Hooks{
		Delta: func(*messages.Delta) { deltas++ },
		Sent:  func(s providers.Sent) { hash = s.Hash },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(hash) != 64 {
		t.Errorf("request hash %q", hash)
	}
	return res, deltas
}

func TestUnknownAdapter(t *testing.T) {
	c := providers.NewClient(providers.Options{Adapters: engine(t, "")})
	t.Cleanup(c.Close)
	_, err := c.Stream(t.Context(), providers.Source{Name: "x", Adapter: "nope"}, providertest.Ask("hello"), providers.Hooks{})
	f := providers.AsFailure(err)
	if !strings.HasPrefix(f.Message, `unknown adapter "nope": there are `) || !strings.Contains(f.Message, "offline, ollama, openai") || !strings.HasPrefix(f.Hint, "Name one of these") {
		t.Errorf("%q, hint %q", f.Message, f.Hint)
	}
}

func ask(text string) func(*messages.CompletionRequest) {
	return func(r *messages.CompletionRequest) {
		r.Question = text
		r.Messages[0].Parts[0].Content = &messages.Part_Text{Text: text}
	}
}

func TestOfflineAnswersFromMemory(t *testing.T) {
	res, deltas := offline(t, func(r *messages.CompletionRequest) {
		r.Recalled = []*messages.RecalledItem{
			{Id: "1", Text: "The boiler code is E4.", AtUs: 1_790_000_000_000_000, Speaker: "user"},
			{Id: "2", Text: r.Question, Speaker: "user"},
		}
	})
	for _, part := range []string{"No model is configured", "- 2026-09-21, you: The boiler code is E4.", "waiter providers add"} {
		if !strings.Contains(res.GetText(), part) {
			t.Errorf("no %q in %q", part, res.GetText())
		}
	}
	if strings.Count(res.GetText(), "boiler?") != 0 {
		t.Errorf("the question is given back: %q", res.GetText())
	}
	if deltas < 3 || res.GetFinish() != messages.Finish_FINISH_STOP {
		t.Errorf("%d deltas, finish %v", deltas, res.GetFinish())
	}
	res, _ = offline(t, func(r *messages.CompletionRequest) { r.MemoryNone = true })
	if !strings.Contains(res.GetText(), "I remember nothing") {
		t.Errorf("%q", res.GetText())
	}
	for said, kept := range map[string]string{"The boiler was serviced today.": "I keep what you said", "锅炉今天修好了。": "记下了"} {
		res, _ = offline(t, func(r *messages.CompletionRequest) {
			ask(said)(r)
			r.MemoryNone = true
		})
		if !strings.Contains(res.GetText(), kept) || strings.Contains(res.GetText(), "remember nothing") {
			t.Errorf("%q is answered %q", said, res.GetText())
		}
	}
	res, _ = offline(t, func(r *messages.CompletionRequest) {
		ask("我跟你说过锅炉的事吗？")(r)
		r.Recalled = []*messages.RecalledItem{{Text: "锅炉的代码是 E4。", AtUs: 951_782_400_000_000, Speaker: "agent"}}
	})
	for _, part := range []string{"没有配置模型", "- 2000-02-29，我：锅炉的代码是 E4。"} {
		if !strings.Contains(res.GetText(), part) {
			t.Errorf("no %q in %q", part, res.GetText())
		}
	}
}

// Its own notices and the commands that it was given are in memory too, but say nothing.
func TestOfflineTellsNotWhatItSaidItself(t *testing.T) {
	notice, _ := offline(t, func(r *messages.CompletionRequest) { r.MemoryNone = true })
	chinese, _ := offline(t, ask("锅炉今天修好了。"))
	list, _ := offline(t, ask("/tools"))
	unknown, _ := offline(t, ask("使用工具 nothing {}"))
	bad, _ := offline(t, ask("使用工具 memory_recall {"))
	if res, _ := offline(t, ask(notice.GetText())); res.GetText() != notice.GetText() {
		t.Errorf("the report of a resident is passed on as %q", res.GetText())
	}
	noise := []*messages.RecalledItem{
		{Text: notice.GetText(), Speaker: "agent"},
		{Text: chinese.GetText(), Speaker: "agent"},
		{Text: notice.GetText(), Speaker: "cook"},
		{Text: list.GetText(), Speaker: "agent"},
		{Text: unknown.GetText(), Speaker: "agent"},
		{Text: bad.GetText(), Speaker: "agent"},
		{Text: "Result of time_now:\n{}", Speaker: "agent"},
		{Text: "The tool time_now failed:\nno clock", Speaker: "agent"},
		{Text: "/tools", Speaker: "user"},
		{Text: "/tool", Speaker: "user"},
		{Text: "/tool nothing {}", Speaker: "user"},
	}
	res, _ := offline(t, func(r *messages.CompletionRequest) { r.Recalled = noise })
	if text := res.GetText(); !strings.Contains(text, "I remember nothing about it.") || strings.Contains(text, "- ") {
		t.Errorf("%q", text)
	}
	res, _ = offline(t, func(r *messages.CompletionRequest) {
		r.Recalled = append(noise, &messages.RecalledItem{Text: "Result of the match: 2 to 1", Speaker: "agent"},
			&messages.RecalledItem{Text: "Result of time_now:\nnoon", Speaker: "user"})
	})
	if text := res.GetText(); strings.Count(text, "\n- ") != 2 || !strings.Contains(text, "- I: Result of the match") ||
		!strings.Contains(text, "- you: Result of time_now") {
		t.Errorf("%q", text)
	}
}

func TestOfflineRunsNamedTools(t *testing.T) {
	for text, args := range map[string]string{
		`/tool memory_commit {"fact": "x", "n": 12345678901234567890}`: `{"fact": "x", "n": 12345678901234567890}`,
		`/tool memory_commit`:                          `{}`,
		`Use tool memory_commit with {"a": [1, 2]}`:    `{"a": [1, 2]}`,
		`please use tool "memory_commit" with {"a":1}`: `{"a":1}`,
		`run the tool memory_commit: {"a":1}`:          `{"a":1}`,
		`使用工具 memory_commit {"a":"茶"}`:                 `{"a":"茶"}`,
		"/tool memory_commit\n{\n\"a\": 1}":            "{\n\"a\": 1}",
	} {
		res, _ := offline(t, ask(text))
		if len(res.GetCalls()) != 1 || res.GetFinish() != messages.Finish_FINISH_TOOL_CALLS {
			t.Errorf("%s: %v", text, res)
			continue
		}
		c := res.GetCalls()[0]
		if c.GetName() != "memory_commit" || string(c.GetArgumentsJson()) != args || c.GetInvalid() != "" || c.GetVendorId() == "" || c.GetCallId() == "" {
			t.Errorf("%s: %v", text, c)
		}
	}
	for text, part := range map[string]string{
		`/tool nothing {}`:          "There is no tool named nothing",
		`/tool memory_commit {"a":`: "must be a JSON object",
		`/tool memory_commit [1]`:   "must be a JSON object",
		`/tool memory_commit {"b":`: "unexpected end",
		`/tools`:                    "- memory_recall: Look into memory.",
		`/tool`:                     "- memory_recall: Look into memory.",
		`tell me how to use tools`:  "No model is configured",
		`使用工具 nothing {}`:           "没有名为 nothing 的工具",
	} {
		res, _ := offline(t, ask(text))
		if len(res.GetCalls()) != 0 || !strings.Contains(res.GetText(), part) || strings.Contains(res.GetText(), "lua:") {
			t.Errorf("%s: %v", text, res)
		}
	}
}

func TestOfflineReportsResults(t *testing.T) {
	res, _ := offline(t, func(r *messages.CompletionRequest) {
		ask("/tool memory_recall {}")(r)
		r.Messages = append(r.Messages,
			&messages.ChatMessage{Role: messages.Role_ROLE_ASSISTANT, Calls: []*messages.ToolInvocation{
				{VendorId: "a", Name: "memory_recall", ArgumentsJson: []byte("{}")}, {VendorId: "b", Name: "memory_commit", ArgumentsJson: []byte("{}")},
			}},
			&messages.ChatMessage{Role: messages.Role_ROLE_TOOL, VendorCallId: "b", ToolName: "memory_commit", Failed: true, Parts: []*messages.Part{{Content: &messages.Part_Text{Text: "disk full"}}}},
			&messages.ChatMessage{Role: messages.Role_ROLE_TOOL, VendorCallId: "a", ToolName: "memory_recall", Parts: []*messages.Part{{Content: &messages.Part_Text{Text: "three facts"}}}},
		)
	})
	if want := "Result of memory_recall:\nthree facts\nThe tool memory_commit failed:\ndisk full"; res.GetText() != want {
		t.Errorf("got %q, want %q", res.GetText(), want)
	}
}

// What the person says while a tool runs does not make its result get lost.
func TestOfflineReportsBeforeWhatWasSaidMeanwhile(t *testing.T) {
	res, _ := offline(t, func(r *messages.CompletionRequest) {
		ask("/tool memory_recall {}")(r)
		r.Messages = append(r.Messages,
			&messages.ChatMessage{Role: messages.Role_ROLE_ASSISTANT, Calls: []*messages.ToolInvocation{{VendorId: "a", Name: "memory_recall", ArgumentsJson: []byte(`{}`)}}},
			&messages.ChatMessage{Role: messages.Role_ROLE_TOOL, VendorCallId: "a", ToolName: "memory_recall", Parts: []*messages.Part{{Content: &messages.Part_Text{Text: "three facts"}}}},
			&messages.ChatMessage{Role: messages.Role_ROLE_USER, Parts: []*messages.Part{{Content: &messages.Part_Text{Text: "And where is the key?"}}}},
		)
		r.Question, r.MemoryNone = "And where is the key?", true
	})
	if text := res.GetText(); !strings.HasPrefix(text, "Result of memory_recall:\nthree facts\n") || !strings.Contains(text, "I remember nothing about it.") {
		t.Errorf("%q", text)
	}
}
