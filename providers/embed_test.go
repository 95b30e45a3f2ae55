package providers_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"homeagent/providers"
)

func TestEmbed(t *testing.T) {
	c := clientOf(t, "")
	const a, b = "[1,0.5,-2]", "[0,1e-3,3]"
	for adapter, x := range map[string]struct{ answer, asked string }{
		"openai": {
			// 1, 0.5, -2 as little-endian floats; the order of the answer is not that of the texts.
			`{"data":[{"index":1,"embedding":` + b + `},{"index":0,"embedding":"AACAPwAAAD8AAADA"}],"usage":{"prompt_tokens":7}}`,
			`/embeddings {"model":"m","input":["one","two"],"dimensions":3,"encoding_format":"base64"}`,
		},
		"ollama": {
			`{"embeddings":[` + a + `,` + b + `],"prompt_eval_count":7}`,
			`/api/embed {"model":"m","input":["one","two"],"dimensions":3}`,
		},
		"gemini": {
			`{"embeddings":[{"values":` + a + `},{"values":` + b + `}]}`,
			`/v1beta/models/m:batchEmbedContents {"requests":[{"model":"models/m","content":{"parts":[{"text":"one"}]},"taskType":"RETRIEVAL_QUERY","outputDimensionality":3},{"model":"models/m","content":{"parts":[{"text":"two"}]},"taskType":"RETRIEVAL_QUERY","outputDimensionality":3}]}`,
		},
		"cohere": {
			`{"embeddings":{"float":[` + a + `,` + b + `]},"meta":{"billed_units":{"input_tokens":7}}}`,
			`/v2/embed {"model":"m","texts":["one","two"],"output_dimension":3,"embedding_types":["float"],"input_type":"search_query"}`,
		},
		"voyage": {
			`{"data":[{"index":0,"embedding":` + a + `},{"index":1,"embedding":` + b + `}],"usage":{"total_tokens":7}}`,
			`/embeddings {"model":"m","input":["one","two"],"output_dimension":3,"input_type":"query"}`,
		},
	} {
		url, bodies := scripted(t, says(200, "application/json", x.answer))
		got, err := c.Embed(t.Context(), providers.Source{Name: "s", Adapter: adapter, BaseURL: url, Model: "m"}, []string{"one", "two"}, providers.EmbedOptions{Purpose: providers.EmbedQuery, Dimensions: 3})
		if err != nil {
			t.Errorf("%s: %v", adapter, err)
			continue
		}
		if fmt.Sprint(got.Vectors) != "[[1 0.5 -2] [0 0.001 3]]" || got.Dimensions != 3 || got.Fingerprint != providers.Fingerprint(adapter, "m", 3) {
			t.Errorf("%s: %+v", adapter, got)
		}
		if adapter != "gemini" && got.Tokens != 7 {
			t.Errorf("%s: %d tokens", adapter, got.Tokens)
		}
		if (*bodies)[0] != x.asked {
			t.Errorf("%s asked\n got %s\nwant %s", adapter, (*bodies)[0], x.asked)
		}
	}
	if providers.Fingerprint("a", "m", 3) == providers.Fingerprint("a", "m", 4) || providers.Fingerprint("a", "bm", 3) == providers.Fingerprint("ab", "m", 3) {
		t.Error("different models have the same fingerprint")
	}
}

func TestEmbedRefusals(t *testing.T) {
	c := clientOf(t, "")
	two := []string{"one", "two"}
	for _, x := range []struct {
		status         int
		answer, kind   string
		message        string
		texts          []string
		adapter        string
		wantDimensions int
	}{
		{200, `{"data":[{"index":0,"embedding":[1]}]}`, "server", "1 embeddings for 2 texts", two, "openai", 0},
		{200, `{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[1]}]}`, "server", "embedding 1 has 1 dimensions", two, "openai", 0},
		{200, `{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}`, "server", "0 dimensions", two, "openai", 0},
		{200, `{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[1,2]}]}`, "server", "3 were asked for", two, "openai", 3},
		{200, `{"data":[{"index":0,"embedding":[1,"x"]},{"index":1,"embedding":[1,2]}]}`, "server", "is no number", two, "openai", 0},
		{200, `{"data":[{"index":0,"embedding":"AADAfw=="},{"index":1,"embedding":"AADAfw=="}]}`, "server", "no finite number", two, "openai", 0},
		{200, `{"data":[{"index":0,"embedding":"A"},{"index":1,"embedding":"A"}]}`, "server", "no base64", two, "openai", 0},
		{200, `<html>`, "server", "no JSON", two, "openai", 0},
		{200, `{"error":{"code":"insufficient_quota","message":"no money"}}`, "quota_exhausted", "no money", two, "openai", 0},
		{401, `{"detail":"Provided API key is invalid."}`, "auth", "is invalid", two, "voyage", 0},
		{400, `{"detail":"Model nope is not supported."}`, "invalid_request", "not supported", two, "voyage", 0},
		{404, `{"error":"model \"m\" not found"}`, "model_not_found", "not found", two, "ollama", 0},
		{200, `{}`, "invalid_request", "makes no embeddings", two, "anthropic", 0},
		{200, `{}`, "invalid_request", "0 texts", nil, "openai", 0},
		{200, `{}`, "invalid_request", "text 1 is empty", []string{"a", " "}, "openai", 0},
	} {
		url, _ := scripted(t, says(x.status, "application/json", x.answer))
		_, err := c.Embed(t.Context(), providers.Source{Name: "s", Adapter: x.adapter, BaseURL: url, Model: "m"}, x.texts, providers.EmbedOptions{Dimensions: x.wantDimensions})
		var f *providers.Failure
		if !errors.As(err, &f) || providers.KindName(f.Kind) != x.kind || !strings.Contains(f.Message, x.message) || f.Source != "s" {
			t.Errorf("%s %d %s: %v, want %s with %q", x.adapter, x.status, x.answer, err, x.kind, x.message)
		}
	}
	_, err := c.Stream(t.Context(), providers.Source{Name: "s", Adapter: "voyage", Model: "m"}, thought(), providers.Hooks{})
	if f := ofKind(t, err, "invalid_request"); !strings.Contains(f.Message, "embeddings alone") {
		t.Errorf("%v", f)
	}
}
