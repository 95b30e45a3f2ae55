package store

import (
	"encoding/binary"
	"fmt"
)

// Space is a key space: the first byte of its keys.
type Space byte

// The key spaces. A byte is never given a second meaning.
const (
	Meta        Space = 'm'
	Inbox       Space = 'i'
	Idempotency Space = 'k'
	Task        Space = 't'
	Journal     Space = 'j'
	Output      Space = 'o'
	Block       Space = 'b'
	Payload     Space = 'p'
	Event       Space = 'e'
	Lexical     Space = 'x'
	Graph       Space = 'g'
	Config      Space = 'c'
	Secret      Space = 's'
	Agent       Space = 'a'
	Approval    Space = 'y'
	Timer       Space = 'q'
	Token       Space = 'n'
	Aside       Space = 'z'
	Usage       Space = 'u'
)

// SpaceInfo is a row of the table of key spaces.
type SpaceInfo struct {
	// Space is the first byte of the keys.
	Space Space
	// Name is one lower-case word.
	Name string
	// Owner is the package that alone encodes the space.
	Owner string
	// What says what a record is.
	What string
	// Keep says how long a record is kept: the key that holds the time, or why it has
	// none.
	Keep string
}

// Spaces returns the table of key spaces. The caller owns the slice.
func Spaces() []SpaceInfo {
	return []SpaceInfo{
		{Meta, "meta", "memory/store", "stamp of the last commit, counters", "for ever: a few fixed keys"},
		{Inbox, "inbox", "memory/ledger", "accepted inputs by dense sequence", "core.retention.tasks after the end; at least as long as its key"},
		{Idempotency, "idempotency", "memory/ledger", "idempotency key to input", "core.retention.keys after it was accepted, and never shorter than its task is open"},
		{Task, "task", "memory/ledger", "state and end of each task by input id", "as its input"},
		{Journal, "journal", "memory/ledger", "steps of turns by task and dense sequence", "core.retention.journal after the end of the task"},
		{Output, "output", "memory/ledger", "intended outputs and their receipts", "core.retention.outputs after it was sent; one not sent is kept: it was promised"},
		{Block, "block", "memory/block", "blocks by id", "memory: until it is forgotten"},
		{Payload, "payload", "memory/block", "payloads by content, in chunks", "with its last block; one that never got a block for a day"},
		{Event, "event", "memory/ledger", "entries of the context by agent and sequence", "memory: until it is forgotten"},
		{Lexical, "lexical", "memory/lexical", "postings of the words of events", "with its event"},
		{Graph, "graph", "memory/graphmem", "quads of facts and their names", "memory: until it is forgotten"},
		{Config, "config", "configs", "configuration values", "until it is changed"},
		{Secret, "secret", "configs", "sealed secrets", "until it is changed"},
		{Agent, "agent", "memory/ledger", "resident agents", "until the agent is destroyed"},
		{Approval, "approval", "memory/approvals", "questions to people about calls", "its owner ends it"},
		{Timer, "timer", "memory/timers", "timers and their last slots", "its owner ends it"},
		{Token, "token", "memory/approvals", "named tokens, by their hash", "its owner ends it"},
		{Aside, "aside", "memory/ledger", "tasks that were ended as crash loops; their journals stay in the journal space", "core.retention.aside after the end of the task, with its journal"},
		{Usage, "usage", "memory/usage", "tokens and money by day, source, agent and conversation; failures of sources", "core.retention.usage; failures until their source is gone or answers"},
	}
}

// names is indexed by the byte of the space; an empty name is an unknown space.
var names = func() (t [256]string) {
	for _, s := range Spaces() {
		t[s.Space] = s.Name
	}
	return t
}()

// Known reports whether s is declared.
func (s Space) Known() bool { return names[s] != "" }

// String returns the declared name, or the byte for an unknown space.
func (s Space) String() string {
	if s.Known() {
		return names[s]
	}
	return fmt.Sprintf("space(%#02x)", byte(s))
}

// Key returns the key made of the byte of s and the parts, in a slice of its own.
func (s Space) Key(parts ...[]byte) []byte {
	n := 1
	for _, p := range parts {
		n += len(p)
	}
	key := append(make([]byte, 0, n), byte(s))
	for _, p := range parts {
		key = append(key, p...)
	}
	return key
}

// KeyString returns the key made of the byte of s and the text.
func (s Space) KeyString(text string) []byte {
	return append(append(make([]byte, 0, 1+len(text)), byte(s)), text...)
}

// KeyUint returns the key made of the byte of s and n in eight bytes, big end
// first, so that keys sort as numbers.
func (s Space) KeyUint(n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, 9), byte(s)), n)
}

// checkKey refuses keys outside the declared spaces and keys without a body.
func checkKey(key []byte) error {
	switch {
	case len(key) == 0:
		return ErrEmptyKey
	case !Space(key[0]).Known():
		return fmt.Errorf("%w: %#02x", ErrSpace, key[0])
	case len(key) == 1:
		return fmt.Errorf("%w in space %s", ErrEmptyKey, Space(key[0]))
	case len(key) > maxKey:
		return fmt.Errorf("%w: key of %d bytes", ErrTooBig, len(key))
	}
	return nil
}

// stampKey holds the number of the last commit.
var stampKey = Meta.KeyString("commit")
