package providertest

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"

	"homeagent/providers/replay"
)

//go:embed testdata
var fixtures embed.FS

// Families gives the names of all families, each that of an adapter.
func Families() []string {
	entries, err := fs.ReadDir(fixtures, "testdata")
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && e.Name() != "scripts" {
			out = append(out, e.Name())
		}
	}
	return out
}

// Fixtures gives the fixtures of a family, such as "openai": archives with one
// answer, a want.json (replay.Want), and maybe a head of lines "status: 429" and
// headers. The answer is answer.sse, .ndjson, .json or .html as it is sent, or
// answer.aws with one message a line, "event-type {payload}" ("!type" for an
// exception), which becomes a binary event stream. They are written from the facts about
// these servers; none is a copy of a recording.
func Fixtures(family string) ([]replay.Recording, error) {
	names, err := fs.Glob(fixtures, path.Join("testdata", family, "*.txtar"))
	if err != nil {
		return nil, err
	}
	var out []replay.Recording
	for _, name := range names {
		b, err := fixtures.ReadFile(name)
		if err != nil {
			return nil, err
		}
		r, err := fixture(strings.TrimSuffix(path.Base(name), ".txtar"), txtar.Parse(b))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// bodies are the content types of answers by their ending.
var bodies = map[string]string{
	".sse": "text/event-stream", ".ndjson": "application/x-ndjson", ".json": "application/json", ".html": "text/html",
	".aws": "application/vnd.amazon.eventstream",
}

func fixture(name string, a *txtar.Archive) (replay.Recording, error) {
	r := replay.Recording{Name: name, Status: 200, Header: make(map[string]string)}
	wanted := false
	for _, f := range a.Files {
		kind, known := bodies[path.Ext(f.Name)]
		switch {
		case f.Name == "head":
			for line := range strings.Lines(string(f.Data)) {
				key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
				if key != "status" {
					r.Header[key] = value
					continue
				}
				n, err := strconv.Atoi(value)
				if err != nil {
					return r, err
				}
				r.Status = n
			}
		case f.Name == "want.json":
			if err := strict(f.Data, &r.Want); err != nil {
				return r, err
			}
			wanted = true
		case strings.HasPrefix(f.Name, "answer.") && known:
			r.Body, r.ContentType = f.Data, kind
			if path.Ext(f.Name) == ".aws" {
				r.Body = binaryStream(f.Data)
			}
		default:
			return r, fmt.Errorf("unknown file %s", f.Name)
		}
	}
	if r.ContentType == "" || !wanted {
		return r, fmt.Errorf("an answer or want.json is missing")
	}
	return r, nil
}

// binaryStream makes an AWS event stream of lines "type {payload}".
func binaryStream(text []byte) []byte {
	var out []byte
	for line := range strings.Lines(string(text)) {
		name, payload, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" {
			continue
		}
		head := append(replay.TextHeader(":event-type", name), replay.TextHeader(":message-type", "event")...)
		if exception, ok := strings.CutPrefix(name, "!"); ok {
			head = append(replay.TextHeader(":exception-type", exception), replay.TextHeader(":message-type", "exception")...)
		}
		head = append(head, replay.TextHeader(":content-type", "application/json")...)
		out = append(out, replay.Message(head, []byte(payload))...)
	}
	return out
}
