package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"homeagent/messages"
)

// categories of LoCoMo.
var categories = map[int]string{1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}

// locomo reads conversations in the form of LoCoMo.
func locomo(b []byte) ([]corpus, error) {
	var samples []struct {
		ID           string                     `json:"sample_id"`
		Conversation map[string]json.RawMessage `json:"conversation"`
		Questions    []struct {
			Text     string   `json:"question"`
			Evidence []string `json:"evidence"`
			Category int      `json:"category"`
		} `json:"qa"`
	}
	if err := json.Unmarshal(b, &samples); err != nil {
		return nil, fmt.Errorf("%w: %w", errShape, err)
	}
	var out []corpus
	for i, s := range samples {
		c := corpus{name: s.ID, labels: map[string]string{}}
		if c.name == "" {
			c.name = fmt.Sprint("conversation-", i+1)
		}
		if err := c.sessions(s.Conversation); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		known := map[string]bool{}
		for _, l := range c.labels {
			known[l] = true
		}
		for _, q := range s.Questions {
			if ids := turns(q.Evidence, known); len(ids) > 0 {
				c.questions = append(c.questions, question{q.Text, categories[q.Category], ids})
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// sessions adds the turns of all sessions, a minute apart.
func (c *corpus) sessions(conversation map[string]json.RawMessage) error {
	var numbers []int
	for key := range conversation {
		if n, err := strconv.Atoi(strings.TrimPrefix(key, "session_")); err == nil {
			numbers = append(numbers, n)
		}
	}
	if len(numbers) == 0 {
		return fmt.Errorf("%w: no session", errShape)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		var turns []struct {
			Speaker string `json:"speaker"`
			ID      string `json:"dia_id"`
			Text    string `json:"text"`
			Caption string `json:"blip_caption"`
		}
		if err := json.Unmarshal(conversation[fmt.Sprint("session_", n)], &turns); err != nil {
			return fmt.Errorf("session %d: %w", n, err)
		}
		var date string
		if err := json.Unmarshal(conversation[fmt.Sprint("session_", n, "_date_time")], &date); err != nil {
			return fmt.Errorf("date of session %d: %w", n, err)
		}
		at, err := time.Parse("3:04 pm on 2 January, 2006", date)
		if err != nil {
			return fmt.Errorf("date of session %d: %w", n, err)
		}
		for i, t := range turns {
			text := t.Text
			if t.Caption != "" {
				text += " [" + t.Caption + "]"
			}
			c.said(t.ID, t.Speaker, text, messages.EventKind_EVENT_KIND_INPUT, at.Add(time.Duration(i)*time.Minute))
		}
	}
	return nil
}

var turnID = regexp.MustCompile(`D:?(\d+):0*(\d+)`)

// turns makes evidence uniform: several ids in one string, leading zeros, "D:11:26"; unknown ones are left out.
func turns(labels []string, known map[string]bool) []string {
	var out []string
	for _, l := range labels {
		for _, m := range turnID.FindAllStringSubmatch(l, -1) {
			n, err := strconv.Atoi(m[1])
			if id := fmt.Sprintf("D%d:%s", n, m[2]); err == nil && known[id] && !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	return out
}
