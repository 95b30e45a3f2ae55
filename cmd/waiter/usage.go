package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"homeagent/internal/client"
)

type usageCmd struct {
	By   []string `default:"source,model" help:"What to keep apart: day, source, model, agent, channel, conversation."`
	From string   `help:"First day, as 2027-03-01; default the first of this month." placeholder:"DAY"`
	To   string   `help:"Last day; default today." placeholder:"DAY"`
}

func (u *usageCmd) Run(c *console, node *client.Client) error {
	got, err := node.Usage(c.ctx, client.UsageQuery{From: u.From, To: u.To, By: u.By})
	if err != nil {
		return err
	}
	return c.show(got, func() { drawUsage(c, got, u.By) })
}

var usageFields = []string{"day", "source", "model", "agent", "channel", "conversation"}

func cellOf(r client.UsageRow, name string) string {
	return clean(map[string]string{
		"day": r.Day, "source": r.Source, "model": r.Model, "agent": r.Agent, "channel": r.Channel, "conversation": r.Conversation,
	}[name])
}

func drawUsage(c *console, got *client.UsageReport, by []string) {
	t := &table{right: map[int]bool{}}
	var names []string
	for _, name := range usageFields {
		// A conversation is one of its channel.
		if slices.Contains(by, name) || name == "channel" && slices.Contains(by, "conversation") {
			names = append(names, name)
			t.head = append(t.head, strings.ToUpper(name))
		}
	}
	first := len(names)
	t.head = append(t.head, "CALLS", "FAILED", "PROMPT", "CACHED", "OUTPUT", "REASONING", "COST")
	for i := first; i < len(t.head); i++ {
		t.right[i] = true
	}
	t.less = []int{first + 5, first + 3, first + 1}
	line := func(r client.UsageRow, cells []any) {
		t.add(append(cells, r.Calls, r.Failed, r.Prompt, r.Cached, r.Output, r.Reasoning, costText(r))...)
	}
	for _, r := range got.Rows {
		var cells []any
		for _, name := range names {
			cells = append(cells, cellOf(r, name))
		}
		line(r, cells)
	}
	var cells []any
	for i := range names {
		cells = append(cells, map[bool]string{true: "all"}[i == 0])
	}
	line(got.Total, cells)
	t.write(c)
	for _, b := range got.Budgets {
		color := good
		switch {
		case b.Spent >= b.Limit:
			color = bad
		case b.Spent >= 0.8*b.Limit:
			color = warn
		}
		c.printf("%s %s of %s %s, until %s\n", c.paint(quiet, "budget of this "+b.Period+":"), c.paint(color, money(b.Spent)), money(b.Limit),
			clean(got.Currency), b.Ends.Local().Format(time.DateTime))
	}
	note := got.From + " to " + got.To + ", cost in " + clean(got.Currency)
	if got.Total.Unpriced > 0 {
		note += fmt.Sprintf("; %d calls have no price and are not in it", got.Total.Unpriced)
	}
	if got.Cut {
		note += "; there are more rows than are shown"
	}
	c.printf("%s\n", c.paint(quiet, note))
}

func money(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

// costText says when nothing is known of the cost, which is not the same as none.
func costText(r client.UsageRow) string {
	switch {
	case r.Unpriced == 0:
		return strconv.FormatFloat(r.Cost, 'f', 4, 64)
	case r.Cost == 0:
		return "?"
	}
	return strconv.FormatFloat(r.Cost, 'f', 4, 64) + "+?"
}
