package providertest

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"

	"homeagent/providers/replay"
)

// Entry is one fixture with what it is about.
type Entry struct {
	// Family is the adapter, Name the file without its ending, with "requests/"
	// before it for a request.
	Family, Name string
	// Note is the first line without the numbers of facts, Facts are those.
	Note  string
	Facts []string
	// Answer is of fixtures of answers, Request and Want of those of requests.
	Answer  *replay.Recording
	Request *Conversation
	Want    *WantRequest
}

// Fact is what a wire is, or what another program got wrong.
type Fact struct {
	// ID is A and a number for a wire, D and a number for a mistake.
	ID   string
	Text string
	// Link to where it was met; may be empty.
	Link string
	// Tests are names of Go tests that show it beside fixtures.
	Tests []string
}

var factList = regexp.MustCompile(`\s*\(((?:[AD]\d+(?:, )?)+)\)\.?$`)

// Catalogue gives all fixtures, by family and name.
func Catalogue() ([]Entry, error) {
	var out []Entry
	for _, family := range Families() {
		recs, err := Fixtures(family)
		if err != nil {
			return nil, err
		}
		for i := range recs {
			e := Entry{Family: family, Name: recs[i].Name, Answer: &recs[i]}
			if err := e.note(path.Join("testdata", family, e.Name+".txtar")); err != nil {
				return nil, err
			}
			out = append(out, e)
		}
		names, err := fs.Glob(fixtures, path.Join("testdata", family, "requests", "*.txtar"))
		if err != nil {
			return nil, err
		}
		for _, file := range names {
			e := Entry{Family: family, Name: "requests/" + strings.TrimSuffix(path.Base(file), ".txtar")}
			if err := e.note(file); err != nil {
				return nil, err
			}
			if _, e.Request, e.Want, err = requestFixture(file); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			out = append(out, e)
		}
	}
	return out, nil
}

// note reads the first line of a fixture.
func (e *Entry) note(file string) error {
	b, err := fixtures.ReadFile(file)
	if err != nil {
		return err
	}
	line, _, _ := strings.Cut(string(txtar.Parse(b).Comment), "\n")
	if m := factList.FindStringSubmatchIndex(line); m != nil {
		e.Facts = strings.Split(line[m[2]:m[3]], ", ")
		line = line[:m[0]]
	}
	e.Note = strings.TrimSuffix(strings.TrimSpace(line), ".")
	if e.Note == "" {
		return fmt.Errorf("%s: the first line does not say what it is about", file)
	}
	return nil
}

// Facts gives what testdata/facts.txt lists, in its order.
func Facts() ([]Fact, error) {
	b, err := fixtures.ReadFile("testdata/facts.txt")
	if err != nil {
		return nil, err
	}
	var out []Fact
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		f := strings.Split(line, "|")
		if len(f) != 4 {
			return nil, fmt.Errorf("facts.txt: %q has not four fields", line)
		}
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		out = append(out, Fact{ID: f[0], Text: f[1], Link: f[2], Tests: strings.Fields(f[3])})
	}
	return out, nil
}
