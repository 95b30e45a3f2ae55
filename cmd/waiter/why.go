package main

import (
	"fmt"
	"strings"
	"time"

	"homeagent/internal/client"
)

type memoryWhyCmd struct {
	Text  []string `arg:"" help:"A question, or the id of an event or a fact."`
	Agent string   `help:"Agent; default main." placeholder:"NAME"`
	Limit int      `help:"Most items." default:"5"`
}

func (m *memoryWhyCmd) Run(c *console, node *client.Client) error {
	got, err := node.MemoryWhy(c.ctx, client.MemoryQuery{Text: strings.Join(m.Text, " "), Agent: m.Agent, Limit: m.Limit})
	if err != nil {
		return err
	}
	return c.show(got, func() {
		for _, e := range got.Events {
			var text []string
			for _, b := range e.Content {
				text = append(text, b.Text)
			}
			c.printf("%s %s\n", c.paint(quiet, e.At.Local().Format(time.DateTime)+" "+e.Kind+":"), clean(strings.Join(text, " ")))
			c.printf("  event %s, conversation %s\n", clean(e.EventID), clean(e.Conversation))
		}
		for _, f := range got.Facts {
			c.printf("%s %s %s\n  fact %s, learnt %s from %s\n", clean(f.Subject), clean(f.Predicate), clean(f.Object),
				clean(f.FactID), f.Learned.Local().Format(time.DateTime), clean(f.Source))
		}
		for i := range got.Items {
			c.reasons(i+1, &got.Items[i])
		}
		switch {
		case got.None:
			c.printf("memory has none\n")
		case len(got.Items)+len(got.Events)+len(got.Facts) == 0:
			c.printf("these words say nothing to search for\n")
		}
		if len(got.LeftOut) > 0 {
			c.printf("%s\n", c.paint(quiet, fmt.Sprintf("left out, the best had to reach a relevance of %.2f:", got.Floor)))
			for i := range got.LeftOut {
				c.reasons(0, &got.LeftOut[i])
			}
		}
	})
}

// reasons prints one item with what spoke for it.
func (c *console) reasons(rank int, r *client.Recalled) {
	head := "-"
	if rank > 0 {
		head = fmt.Sprintf("%d.", rank)
	}
	c.printf("%s %s\n", head, clean(r.Text))
	where := []string{r.Via, r.Speaker, r.At.Local().Format(time.DateTime)}
	if r.Conversation != "" {
		where = append(where, "conversation "+r.Conversation)
	}
	if r.Source != "" {
		where = append(where, "from "+r.Source)
	}
	if len(r.Path) > 0 {
		where = append(where, "path "+strings.Join(r.Path, " > "))
	}
	c.printf("   %s\n", clean(strings.Join(where, ", ")+", id "+r.ID))
	parts := []string{fmt.Sprintf("score %.2f, relevance %.2f:", r.Score, r.Relevance)}
	for _, s := range r.Channels {
		parts = append(parts, fmt.Sprintf("%s %+.2f", s.Channel, s.Score))
	}
	if len(r.Matched) > 0 {
		parts = append(parts, "["+strings.Join(r.Matched, " ")+"]")
	}
	c.printf("   %s\n", c.paint(quiet, clean(strings.Join(parts, " "))))
	if r.SupersededBy != "" {
		c.printf("   superseded by %s\n", clean(r.SupersededBy))
	}
}
