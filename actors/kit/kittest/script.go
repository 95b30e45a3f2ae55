package kittest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
)

var update = flag.Bool("update", false, "write the transcripts in testdata anew")

// Script steps one machine and writes its transcript. It is used by the test's goroutine.
type Script struct {
	t       testing.TB
	name    string
	machine kit.Machine
	now     time.Time
	out     strings.Builder
	steps   int
	frozen  []frozen
	done    bool
}

// frozen is a message as it was when it was first seen.
type frozen struct {
	where string
	live  proto.Message
	copy  proto.Message
}

// New starts a transcript that is compared with testdata/name.txt. The first step's time is start plus its d. The test
// fails when it ends without Done.
func New(t testing.TB, name string, m kit.Machine, start time.Time) *Script {
	t.Helper()
	s := &Script{t: t, name: name, machine: m, now: start}
	t.Cleanup(func() {
		if !s.done && !t.Failed() {
			t.Errorf("transcript %s: Done was not called, nothing was compared", name)
		}
	})
	return s
}

// Now is the time of the last step.
func (s *Script) Now() time.Time { return s.now }

// Note writes a line of prose into the transcript.
func (s *Script) Note(format string, args ...any) {
	fmt.Fprintf(&s.out, "\n# "+format+"\n", args...)
}

// Step moves the time on by d, steps the machine with e and returns its effects, which are in the transcript as well.
func (s *Script) Step(d time.Duration, e kit.Event) []kit.Effect {
	s.t.Helper()
	s.now = s.now.Add(d)
	s.steps++
	fmt.Fprintf(&s.out, "+%s in  %s\n", d, renderEvent(e))
	s.freeze("the message received", e.Msg)
	effects := s.machine.Step(s.now, e)
	if len(effects) == 0 {
		s.out.WriteString("    out (nothing)\n")
	}
	for _, f := range effects {
		fmt.Fprintf(&s.out, "    out %s\n", renderEffect(f))
		s.freeze("the message sent", messageOf(f))
	}
	return effects
}

// Show writes what the machine shows to people into the transcript, as JSON. The machine must be a kit.Shower.
func (s *Script) Show() {
	s.t.Helper()
	shower, ok := s.machine.(kit.Shower)
	if !ok {
		s.t.Fatalf("transcript %s: %T shows nothing", s.name, s.machine)
	}
	text, err := json.Marshal(shower.Show())
	if err != nil {
		s.t.Fatalf("transcript %s: what %T shows is not JSON: %v", s.name, s.machine, err)
	}
	fmt.Fprintf(&s.out, "    shows %s\n", text)
}

// Done compares the transcript with testdata/NAME.txt, or writes that file under -update.
func (s *Script) Done() {
	s.t.Helper()
	s.done = true
	if s.steps == 0 {
		s.t.Fatalf("transcript %s: no step was made", s.name)
	}
	s.checkFrozen()
	path := filepath.Join("testdata", s.name+".txt")
	got := []byte(strings.TrimLeft(s.out.String(), "\n"))
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		s.t.Fatalf("transcript %s does not exist; run with -update and read what it writes:\n%s", path, got)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	want = bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))
	if !bytes.Equal(got, want) {
		s.t.Errorf("transcript %s differs (run with -update to accept):\n%s", path, difference(string(want), string(got)))
	}
}

func (s *Script) freeze(where string, v any) {
	m, ok := v.(proto.Message)
	if !ok || m == nil || !m.ProtoReflect().IsValid() {
		return
	}
	s.frozen = append(s.frozen, frozen{where: fmt.Sprintf("step %d: %s", s.steps, where), live: m, copy: proto.Clone(m)})
}

func (s *Script) checkFrozen() {
	s.t.Helper()
	for _, f := range s.frozen {
		if !proto.Equal(f.live, f.copy) {
			s.t.Errorf("transcript %s, %s changed afterwards; messages are frozen:\n was %s\n is  %s",
				s.name, f.where, renderMessage(f.copy), renderMessage(f.live))
		}
	}
}

// difference shows the first place where two texts differ, with the lines around it.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	i := 0
	for i < len(w) && i < len(g) && w[i] == g[i] {
		i++
	}
	var b strings.Builder
	for k := max(0, i-3); k < i; k++ {
		fmt.Fprintf(&b, "  %s\n", w[k])
	}
	for k := i; k < min(len(w), i+4); k++ {
		fmt.Fprintf(&b, "- %s\n", w[k])
	}
	for k := i; k < min(len(g), i+4); k++ {
		fmt.Fprintf(&b, "+ %s\n", g[k])
	}
	return b.String()
}
