package turn

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer"

	"homeagent/messages"
)

// encodings are the vocabularies that the estimate is measured against.
var encodings = []tokenizer.Encoding{tokenizer.Cl100kBase, tokenizer.O200kBase}

func countTokens(t testing.TB, e tokenizer.Encoding, text string) int {
	t.Helper()
	enc, err := tokenizer.Get(e)
	if err != nil {
		t.Fatal(err)
	}
	n, err := enc.Count(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The estimate of each sample is never more than a few per cent below what a real tokenizer counts, and not so far above
// that a prompt would be half empty.
func TestEstimate(t *testing.T) {
	under := map[string]float64{"base64": 15} // noise, which no rule about words fits
	files, err := filepath.Glob("testdata/tokens/*.txt")
	if err != nil || len(files) < 14 {
		t.Fatalf("%d samples, %v", len(files), err)
	}
	files = append(files, "doc.go", "state.go", "../../README.md", "testdata/plain.txt") // what nothing was fitted to
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(f), ".txt")
		limit := under[name]
		if limit == 0 {
			limit = 8
		}
		got := textTokens(string(b))
		for _, e := range encodings {
			n := countTokens(t, e, string(b))
			off := float64(got-n) * 100 / float64(n)
			t.Logf("%-18s estimated %5d  %-11s %5d  %+6.1f %%", name, got, e, n, off)
			if off < -limit || off > 70 {
				t.Errorf("%s: %d tokens estimated, %s counts %d: %+.1f %%", name, got, e, n, off)
			}
		}
	}
}

// A whole request is estimated like its texts.
func TestMessageTokens(t *testing.T) {
	text := strings.Repeat("What the kitchen needs is a window. ", 20)
	inner := textTokens(text)
	msg := &messages.ChatMessage{
		Parts:     []*messages.Part{{Content: &messages.Part_Text{Text: text}}, {Content: &messages.Part_Payload{Payload: &messages.PayloadRef{}}}},
		Reasoning: text, Calls: []*messages.ToolInvocation{{ArgumentsJson: []byte(text)}},
	}
	if got := messageTokens(msg); got < 3*inner+payloadTokens || got > 3*inner+payloadTokens+20 {
		t.Errorf("%d tokens, its texts have %d each", got, inner)
	}
}

func TestTextTokens(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "the": 1, "a b c": 3, "1234567": 3, "你好": 3, "\n": 1, "==================================": 4, "\xff\xfe": 2,
	} {
		if got := textTokens(text); got != want {
			t.Errorf("%q: %d tokens, want %d", text, got, want)
		}
	}
}

func FuzzTextTokens(f *testing.F) {
	f.Add("Grüße, 世界! 0x1F {\"a\":[1,2]}")
	f.Fuzz(func(t *testing.T, s string) {
		n := textTokens(s)
		if n < 0 || n > len(s) {
			t.Errorf("%d tokens for %d bytes", n, len(s))
		}
		if more := textTokens(s + " more words"); more < n-1 {
			t.Errorf("%d tokens become %d with more text", n, more)
		}
	})
}

func BenchmarkTextTokens(b *testing.B) {
	text, err := os.ReadFile("testdata/tokens/english_technical.txt")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		textTokens(string(text))
	}
}
