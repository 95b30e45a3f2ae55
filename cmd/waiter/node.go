package main

import (
	"fmt"
	"strings"
	"time"

	"homeagent/internal/client"
)

type statusCmd struct{}

func (*statusCmd) Run(c *console, node *client.Client) error {
	s, err := node.Status(c.ctx)
	if err != nil {
		return err
	}
	h, err := node.Health(c.ctx)
	if err != nil {
		return err
	}
	full := struct {
		*client.Status
		Health *client.Health `json:"health"`
	}{s, h}
	if err := c.show(full, func() { drawStatus(c, s, h) }); err != nil {
		return err
	}
	if s.State != "ready" || h.Status != "ok" || s.Ledger == nil || !storeWell(s.Ledger) {
		return errUnwell
	}
	return nil
}

func storeWell(l *client.Ledger) bool {
	return !l.DiskLow && !l.Full && l.Broken == "" && len(l.Damage) == 0
}

func drawStatus(c *console, s *client.Status, h *client.Health) {
	row := func(name, format string, args ...any) {
		c.printf("%s %s\n", c.paint(quiet, fmt.Sprintf("%-10s", name)), fmt.Sprintf(format, args...))
	}
	color := good
	if s.State != "ready" || h.Status != "ok" {
		color = bad
	}
	row("node", "%s, %s, scheduler %s", s.Node, c.paint(color, s.State), h.Status)
	row("version", "%s (%s)", s.Version, s.Revision)
	row("up", "%s, since %s, pid %d", span(time.Duration(s.UptimeS*float64(time.Second))),
		s.Started.Local().Format(time.DateTime), s.PID)
	row("data", "%s", s.Data)
	row("http", "%s", s.HTTP)
	if s.Socket != "" {
		row("socket", "%s", s.Socket)
	}
	row("memory", "%s, %d goroutines, %d streams", amount(int64(s.MemoryBytes)), s.Goroutines, s.Streams)
	if s.Ledger == nil {
		row("inputs", "%s", c.paint(bad, "the ledger does not answer"))
		return
	}
	row("inputs", "%d open, %d accepted, %d ended", s.Ledger.Open, s.Ledger.Accepted, s.Ledger.Ended)
	row("store", "%s", storeLine(s.Ledger))
	if spaces := spacesLine(s.Ledger); spaces != "" {
		row("of it", "%s", spaces)
	}
	if s.Ledger.DiskLow {
		row("disk", "%s", c.paint(bad, "low: nothing new is taken until there is room"))
	}
	if s.Ledger.Full {
		row("budget", "%s", c.paint(bad, "reached: nothing new is taken until there is room; see core.store.budget"))
	}
	if s.Ledger.Pressure > 0 && !s.Ledger.Full {
		row("budget", "%s", c.paint(warn, fmt.Sprintf("passed: what has ended is kept 1/%d as long", 1<<s.Ledger.Pressure)))
	}
	if s.Ledger.Broken != "" {
		row("broken", "%s", c.paint(bad, clean(s.Ledger.Broken)))
	}
	for _, d := range s.Ledger.Damage {
		row("damaged", "%s", c.paint(bad, clean(d)))
	}
}

func storeLine(l *client.Ledger) string {
	line := amount(l.Bytes)
	if l.BudgetBytes > 0 {
		line += " of " + amount(l.BudgetBytes)
	}
	return line + ", " + amount(l.FreeBytes) + " free"
}

// spacesLine names the largest spaces of the store.
func spacesLine(l *client.Ledger) string {
	var parts []string
	for _, s := range l.Spaces[:min(4, len(l.Spaces))] {
		parts = append(parts, s.Name+" "+amount(s.Bytes))
	}
	return strings.Join(parts, ", ")
}

type stopCmd struct {
	Agent        string `help:"Agent; default main." placeholder:"NAME"`
	Conversation string `help:"Only this conversation." placeholder:"NAME"`
}

func (s *stopCmd) Run(c *console, node *client.Client) error {
	got, err := node.Stop(c.ctx, client.Stop{Agent: s.Agent, Conversation: s.Conversation})
	if err != nil {
		return err
	}
	return c.show(got, func() { c.printf("%s\n", stopText(got)) })
}

type nodesCmd struct{}

func (*nodesCmd) Run(c *console, node *client.Client) error {
	n, err := node.Nodes(c.ctx)
	if err != nil {
		return err
	}
	return c.show(n, func() {
		t := &table{head: []string{"NODE", "STATE", "VERSION", "UP"}}
		for _, v := range n.Nodes {
			name := v.Name
			if v.Self {
				name += " (this one)"
			}
			t.add(name, cell{v.State, stateColor(v.State)}, v.Version, ago(v.Started))
		}
		t.write(c)
	})
}

type channelsCmd struct{}

func (*channelsCmd) Run(c *console, node *client.Client) error {
	got, err := node.Channels(c.ctx)
	if err != nil {
		return err
	}
	return c.show(got, func() {
		t := &table{head: []string{"CHANNEL", "KIND", "MODE", "WAY OUT"}}
		for _, v := range got.Channels {
			way := v.Owner
			if way == "" {
				way = "event stream"
			}
			t.add(v.Name, v.Kind, v.Mode, way)
		}
		t.write(c)
	})
}

type memoryCmd struct {
	Query memoryQueryCmd `cmd:"" default:"withargs" help:"Search; without words, the latest events."`
	Facts memoryFactsCmd `cmd:"" help:"Facts about something."`
	Why   memoryWhyCmd   `cmd:"" help:"Why memory brings up what it does, and what it leaves out."`
}

type memoryQueryCmd struct {
	Text  []string `arg:"" optional:"" help:"What to search for."`
	Agent string   `help:"Agent; default main." placeholder:"NAME"`
	Limit int      `short:"n" help:"Most items, 1 to 200." default:"20"`
}

func (m *memoryQueryCmd) Run(c *console, node *client.Client) error {
	got, err := node.Memory(c.ctx, client.MemoryQuery{Text: strings.Join(m.Text, " "), Agent: m.Agent, Limit: m.Limit})
	if err != nil {
		return err
	}
	return c.show(got, func() {
		for _, i := range got.Items {
			c.printf("%s %s\n", c.paint(quiet, i.At.Local().Format(time.DateTime)+" "+i.Via+" "+i.Speaker+":"), clean(i.Text))
		}
		for _, e := range got.Events {
			var text []string
			for _, b := range e.Content {
				text = append(text, b.Text)
			}
			c.printf("%s %s\n", c.paint(quiet, e.At.Local().Format(time.DateTime)+" "+e.Kind+":"), clean(strings.Join(text, " ")))
		}
		if len(got.Items)+len(got.Events) == 0 {
			c.printf("nothing\n")
		}
		if f := got.Figures; f != nil {
			c.printf("%s\n", c.paint(quiet, fmt.Sprintf("%d events, %d facts, %d terms", f.Events, f.Facts, f.Terms)))
		}
	})
}

type memoryFactsCmd struct {
	Entity string `arg:"" help:"Who or what."`
	Agent  string `help:"Agent; default main." placeholder:"NAME"`
}

func (m *memoryFactsCmd) Run(c *console, node *client.Client) error {
	got, err := node.Memory(c.ctx, client.MemoryQuery{Entity: m.Entity, Agent: m.Agent})
	if err != nil {
		return err
	}
	return c.show(got.Facts, func() {
		if len(got.Facts) == 0 {
			c.printf("no facts about %s\n", m.Entity)
			return
		}
		t := &table{head: []string{"SUBJECT", "RELATION", "OBJECT", "LEARNT", "UNTIL"}}
		for _, f := range got.Facts {
			until := ""
			if !f.ValidTo.IsZero() {
				until = f.ValidTo.Local().Format(time.DateTime)
			}
			t.add(clean(f.Subject), clean(f.Predicate), clean(f.Object), ago(f.Learned), until)
		}
		t.write(c)
	})
}
