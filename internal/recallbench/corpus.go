package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"homeagent/messages"
)

// corpus is one conversation with questions about it.
type corpus struct {
	name   string
	events []*messages.Event
	// labels names what evidence refers to, by event id.
	labels    map[string]string
	questions []question
}

// question about a conversation.
type question struct {
	text     string
	category string // empty when the set has none
	evidence []string
}

// file is a set of conversations.
type file struct {
	name    string
	corpora []corpus
}

// readFile reads a file of either shape; labels are those of --evidence, by user.
func readFile(path string, labels map[string][]label) (file, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return file{}, err
	}
	out := file{name: filepath.Base(path)}
	switch {
	case bytes.HasPrefix(bytes.TrimSpace(b), []byte("[")):
		out.corpora, err = locomo(b)
	default:
		out.corpora, err = memoryBank(b, labels)
	}
	if err != nil {
		return file{}, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}

// label is a question of --evidence with the exchanges that answer it.
type label struct {
	Text     string `json:"q"`
	Evidence []int  `json:"evidence_exchange_index"`
}

// readLabels reads --evidence.
func readLabels(path string) (map[string][]label, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []struct {
		User      string  `json:"user"`
		Questions []label `json:"questions"`
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	out := map[string][]label{}
	for _, u := range list {
		out[u.User] = append(out[u.User], u.Questions...)
	}
	return out, nil
}

// said adds an event to a conversation. Event ids sort as the events came.
func (c *corpus) said(label, speaker, text string, kind messages.EventKind, at time.Time) {
	id := fmt.Sprintf("%06d", len(c.events))
	who := &messages.Principal{Id: "owner", Kind: messages.PrincipalKind_PRINCIPAL_KIND_OWNER}
	if speaker != "" {
		who = &messages.Principal{Id: strings.ToLower(speaker), Name: speaker, Kind: messages.PrincipalKind_PRINCIPAL_KIND_PERSON}
	}
	c.labels[id] = label
	c.events = append(c.events, &messages.Event{
		EventId: id, Kind: kind, Agent: "main", Conversation: c.name, Principal: who, AtUs: at.UnixMicro(), TaskId: id,
		Taint: messages.Taint_TAINT_TRUSTED,
		Blocks: []*messages.Block{{
			BlockId: id + "/0", Content: &messages.Part{Content: &messages.Part_Text{Text: text}}, Principal: who,
			Agent: "main", Conversation: c.name, Taint: messages.Taint_TAINT_TRUSTED, Modality: "text", CreatedUs: at.UnixMicro(),
		}},
	})
}
