package scheduler

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"homeagent/messages"
)

// saying is a fingerprint of who says what where.
type saying [sha256.Size]byte

func sayingOf(in *messages.Input) saying {
	h := sha256.New()
	field(h, in.GetPrincipal().GetId())
	field(h, in.GetChannel())
	field(h, in.GetConversation())
	for _, p := range in.GetParts() {
		field(h, p.GetText())
		field(h, p.GetPayload().GetId())
	}
	var out saying
	h.Sum(out[:0])
	return out
}

// field writes a text with its length before it, so that no two lists of texts run together.
func field(h hash.Hash, text string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(text)))
	h.Write(n[:])
	h.Write([]byte(text))
}

// repeats tells whether an input can be a repetition of another: a person said it, without a key of its own.
func repeats(in *messages.Input) bool {
	return in.GetIdempotencyKey() == "" && in.GetSource() == messages.InputSource_INPUT_SOURCE_PERSON
}

// duplicateOf finds the unfinished input that a new one repeats within the window; else the new one is what later ones
// may repeat.
func (s *state) duplicateOf(t *task) *task {
	if !repeats(t.input) {
		return nil
	}
	t.said = sayingOf(t.input)
	if first := s.sayings[t.said]; first != nil && first != t && s.p.DuplicateWindow > 0 && s.now.Sub(first.arrived) <= s.p.DuplicateWindow {
		return first
	}
	s.sayings[t.said] = t
	return nil
}

// unsay forgets what a task said; it has ended, or says something else now.
func (s *state) unsay(t *task) {
	if s.sayings[t.said] == t {
		delete(s.sayings, t.said)
	}
}
