package providertest

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

//go:embed testdata
var fixtures embed.FS

// Fixtures gives the fixtures of a family, such as "openai": archives with an
// answer.sse, .json or .html, a want.json as in expected.jsonl, and maybe a head
// of lines "status: 429" and headers. They are written from the facts about
// these servers; none is a copy of a recording.
func Fixtures(family string) ([]Recording, error) {
	names, err := fs.Glob(fixtures, path.Join("testdata", family, "*.txtar"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("no fixtures of %q: %w", family, err)
	}
	var out []Recording
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

func fixture(name string, a *txtar.Archive) (Recording, error) {
	r := Recording{Name: name, Status: 200, Header: make(map[string]string)}
	wanted := false
	for _, f := range a.Files {
		switch f.Name {
		case "head":
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
		case "answer.sse":
			r.Body, r.ContentType, r.Stream = f.Data, "text/event-stream", true
		case "answer.json":
			r.Body, r.ContentType = f.Data, "application/json"
		case "answer.html":
			r.Body, r.ContentType = f.Data, "text/html"
		case "want.json":
			if err := strict(f.Data, &r.Want); err != nil {
				return r, err
			}
			wanted = true
		default:
			return r, fmt.Errorf("unknown file %s", f.Name)
		}
	}
	if r.ContentType == "" || !wanted {
		return r, fmt.Errorf("an answer or want.json is missing")
	}
	return r, nil
}
