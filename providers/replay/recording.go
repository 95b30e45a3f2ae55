package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"homeagent/providers"
	"homeagent/providers/framing"
)

// Recording is what a server sent and what must come of it.
type Recording struct {
	// Name for people; its first folder is the family.
	Name string
	// Status and ContentType of the answer.
	Status      int
	ContentType string
	// Header has further headers; may be nil.
	Header map[string]string
	// Body as it was sent.
	Body []byte
	// Want is the unified result.
	Want Want
}

// Kind is the framing of the body.
func (r Recording) Kind() framing.Kind { return framing.Choose(framing.JSON, r.ContentType) }

// Stream tells that the body is a stream of events.
func (r Recording) Stream() bool { return r.Kind() != framing.JSON }

// Content types of recordings by the ending of their files.
const (
	typeSSE    = "text/event-stream"
	typeNDJSON = "application/x-ndjson"
	typeJSON   = "application/json"
	typeAWS    = "application/vnd.amazon.eventstream"
)

// New makes a recording of a file's bytes. An empty contentType is told from the
// file's ending. Lines of JSON in a file .ndjson, where the adapter or the
// content type speaks of server-sent events, are events whose framing was taken
// off; it is put back.
func New(name string, body []byte, info providers.Info, status int, contentType string) Recording {
	r := Recording{Name: name, Status: status, ContentType: contentType, Body: body}
	if status == 0 {
		r.Status = 200
	}
	bare := path.Ext(filepath.ToSlash(name)) == ".ndjson" && !bytes.Contains(body, []byte("\ndata:")) && !bytes.HasPrefix(body, []byte("data:"))
	if r.ContentType == "" {
		switch path.Ext(filepath.ToSlash(name)) {
		case ".sse":
			r.ContentType = typeSSE
		case ".ndjson":
			r.ContentType = typeNDJSON
			if info.Framing == framing.SSE {
				r.ContentType = typeSSE
			}
		case ".bin":
			r.ContentType = typeAWS
		case ".json":
			r.ContentType = typeJSON
		default:
			r.ContentType = guess(body, info.Framing)
		}
	}
	if bare && r.Kind() == framing.SSE {
		r.Body = framed(body, info.Name == "openai" || info.Extends == "openai")
	}
	return r
}

// guess tells the content type of a body whose file does not say it.
func guess(body []byte, declared framing.Kind) string {
	switch trimmed := bytes.TrimSpace(body); {
	case json.Valid(trimmed):
		return typeJSON
	case declared == framing.NDJSON:
		return typeNDJSON
	case declared == framing.EventStream:
		return typeAWS
	}
	return typeSSE
}

func framed(body []byte, done bool) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(body) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			fmt.Fprintf(&b, "data: %s\n\n", line)
		}
	}
	if done {
		b.WriteString("data: [DONE]\n\n")
	}
	return b.Bytes()
}

// AdapterFor gives the name of the adapter for a recording's family; known tells
// which adapters there are. An unknown family of compatible servers is spoken to
// as generic.
func AdapterFor(name string, known func(string) bool) string {
	family, _, _ := strings.Cut(filepath.ToSlash(name), "/")
	short := strings.TrimPrefix(family, "compat-")
	for _, prefix := range []string{"", "aws-", "amazon-", "google-"} {
		for _, suffix := range []string{"", "-chat", "-openai", "-messages", "-v1", "-v2", "-qianfan", "-converse"} {
			try, begins := strings.CutPrefix(short, prefix)
			try, ends := strings.CutSuffix(try, suffix)
			if other, ok := aliases[try]; ok {
				try = other
			}
			if begins && ends && known(try) {
				return try
			}
		}
	}
	if short != family {
		return "generic"
	}
	return family
}

// aliases are other names that people have for the servers of an adapter.
var aliases = map[string]string{
	"vertex": "gemini", "google": "gemini", "moonshot": "kimi", "zai": "glm", "zhipu": "glm", "alibaba": "qwen", "dashscope": "qwen",
	"qianfan": "baidu", "grok": "xai", "claude": "anthropic", "responses": "openai-responses", "llama.cpp": "llamacpp", "llama-cpp": "llamacpp",
	"lm-studio": "lmstudio", "github-models": "github",
}

// Load reads expected.jsonl in dir and the files it names. info describes the
// adapter of each; a file whose adapter does not exist is given all the same,
// with an empty Info behind it.
func Load(dir string, info func(name string) providers.Info) ([]Recording, error) {
	list, err := os.ReadFile(filepath.Join(dir, "expected.jsonl"))
	if err != nil {
		return nil, err
	}
	var out []Recording
	in := bufio.NewScanner(bytes.NewReader(list))
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		var line struct {
			File     string `json:"file"`
			Status   int    `json:"status"`
			Expected Want   `json:"expected"`
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("expected.jsonl: %w", err)
		}
		if !filepath.IsLocal(line.File) {
			return nil, fmt.Errorf("expected.jsonl: %q is outside of the folder", line.File)
		}
		body, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(line.File)))
		if err != nil {
			return nil, err
		}
		status := line.Status
		if status == 0 && strings.Contains(path.Base(line.File), "err-") && line.Expected.Error != nil {
			status = line.Expected.Error.Status
		}
		r := New(line.File, body, info(line.File), status, "")
		r.Want = line.Expected
		out = append(out, r)
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s names no recordings", filepath.Join(dir, "expected.jsonl"))
	}
	return out, nil
}
