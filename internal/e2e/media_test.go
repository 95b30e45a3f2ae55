package e2e

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homeagent/providers"
	"homeagent/providers/providertest"
)

// TestPicture sends a picture: a model that sees gets it, smaller; one that does not is told so, and asks the other one by
// a tool, which is offered only then.
func TestPicture(t *testing.T) {
	n, v := newNode(t), newVendor(t)
	n.start()
	n.addSource(v, "blind")
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 3000, 300))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "wide.png")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	send := func() string {
		t.Helper()
		v.plays(providertest.Step{Text: []string{"I see."}})
		contains(t, n.waiter("send", "--wait", "--attach", file, "what is this?").must(t).stdout, "I see.")
		all := v.Requests()
		return string(all[len(all)-1].Body)
	}
	body := send()
	contains(t, body, "blk_media_", "not shown to this model")
	if strings.Contains(body, ";base64,") || strings.Contains(body, providers.ToolDescribeImage) {
		t.Errorf("nobody can look at it: %.400s", body)
	}
	for _, key := range []string{"adapter=openai", "base_url=" + v.URL(), "model=eye", "vision=true", "priority=5"} {
		n.waiter("config", "set", "core.llm.sources.eye."+key).must(t)
	}
	body = send()
	contains(t, body, "not shown to this model", providers.ToolDescribeImage, providers.ToolOCRImage)
	_, rest, _ := strings.Cut(body, "blk_media_")
	id, _, _ := strings.Cut("blk_media_"+rest, ",")

	v.plays(
		providertest.Step{Model: "eye", Text: []string{"a grey bar"}},
		providertest.Step{AfterTool: &yes, Text: []string{"It is a grey bar."}},
		providertest.Step{Tools: []providertest.Tool{{ID: "c1", Name: providers.ToolDescribeImage, Args: []byte(`{"attachment":"` + id + `"}`)}}},
	)
	contains(t, n.waiter("send", "--wait", "--attach", file, "and now?").must(t).stdout, "It is a grey bar.")
	all := v.Requests()
	contains(t, string(all[len(all)-2].Body), `"model":"eye"`, "base64,")
	contains(t, string(all[len(all)-1].Body), "a grey bar")

	n.waiter("providers", "use", "eye").must(t)
	if body = send(); !strings.Contains(body, "data:image/") || strings.Contains(body, providers.ToolDescribeImage) {
		t.Errorf("a model that sees: %.400s", body)
	}
	usage := n.waiter("--json", "usage", "--by", "source").must(t).stdout
	contains(t, usage, `"source": "blind"`, `"source": "eye"`)
	bad := n.waiter("send", "--attach", filepath.Join(n.data, "run", "homed.json"), "look")
	if contains(t, bad.stderr, "neither a picture nor sound"); bad.code == 0 {
		t.Error("a text went as a picture")
	}
}
