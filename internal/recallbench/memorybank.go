package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"homeagent/messages"
)

// memoryBank reads conversations in the form of MemoryBank. The days of a person come in order; the two halves of an
// exchange have one label, its number.
func memoryBank(b []byte, labels map[string][]label) ([]corpus, error) {
	var users map[string]struct {
		History map[string][]struct {
			Query    string `json:"query"`
			Response string `json:"response"`
		} `json:"history"`
	}
	if err := json.Unmarshal(b, &users); err != nil {
		return nil, fmt.Errorf("%w: %w", errShape, err)
	}
	var out []corpus
	for _, name := range slices.Sorted(maps.Keys(users)) {
		u := users[name]
		if len(u.History) == 0 {
			return nil, fmt.Errorf("%w: %s has no history", errShape, name)
		}
		c := corpus{name: name, labels: map[string]string{}}
		n := 0
		for _, day := range slices.Sorted(maps.Keys(u.History)) {
			at, err := time.Parse("2006-01-02", day)
			if err != nil {
				return nil, fmt.Errorf("a day of %s: %w", name, err)
			}
			for i, x := range u.History[day] {
				when := at.Add(8*time.Hour + time.Duration(i)*time.Minute)
				c.said(strconv.Itoa(n), "", x.Query, messages.EventKind_EVENT_KIND_INPUT, when)
				c.said(strconv.Itoa(n), "", x.Response, messages.EventKind_EVENT_KIND_RESPONSE, when.Add(time.Second))
				n++
			}
		}
		for _, l := range labels[name] {
			q := question{text: l.Text}
			for _, i := range l.Evidence {
				if i >= 0 && i < n {
					q.evidence = append(q.evidence, strconv.Itoa(i))
				}
			}
			if len(q.evidence) > 0 {
				c.questions = append(c.questions, q)
			}
		}
		out = append(out, c)
	}
	return out, nil
}
