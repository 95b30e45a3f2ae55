package main

import (
	"strings"
	"time"

	"homeagent/internal/client"
)

type timersCmd struct {
	List   timersListCmd   `cmd:"" default:"1" help:"Show all, the next one first."`
	Add    timersAddCmd    `cmd:"" help:"Set one."`
	Remove timersRemoveCmd `cmd:"" help:"Remove one."`
	Pause  timersOrderCmd  `cmd:"" help:"Hold one; times that pass are skipped."`
	Resume timersOrderCmd  `cmd:"" help:"Let one that is held go on."`
	Run    timersOrderCmd  `cmd:"" help:"Run one now, beside its times."`
}

type timersListCmd struct {
	Agent string `help:"Only those of this agent." placeholder:"NAME"`
}

func (t *timersListCmd) Run(c *console, node *client.Client) error {
	got, err := node.Timers(c.ctx, t.Agent)
	if err != nil {
		return err
	}
	return c.show(got, func() {
		if len(got.Timers) == 0 {
			c.printf("no timers\n")
			return
		}
		out := &table{head: []string{"ID", "NAME", "NEXT", "WHEN", "LAST", "TEXT"}, less: []int{4, 3, 1}}
		for i := range got.Timers {
			m := &got.Timers[i]
			out.add(m.ID, short(clean(m.Name), 20), cell{nextOf(m), nextColor(m)}, whenOf(m), lastOf(m), short(clean(m.Text), 40))
		}
		out.write(c)
	})
}

// clockForm is how times of timers are shown, in the zone in which they are read.
const clockForm = "2006-01-02 15:04:05"

func inZone(t *client.Timer, at *time.Time) string {
	if loc, err := time.LoadLocation(t.EffectiveZone); err == nil && t.EffectiveZone != "Local" { // the node's own zone has no name here
		return at.In(loc).Format(clockForm) + " " + t.EffectiveZone
	}
	return at.Local().Format(clockForm)
}

func nextOf(t *client.Timer) string {
	switch {
	case t.Paused:
		return "held"
	case t.Next == nil:
		return "done"
	}
	return inZone(t, t.Next)
}

func nextColor(t *client.Timer) string {
	switch {
	case t.Paused:
		return warn
	case t.Next == nil:
		return quiet
	}
	return ""
}

func whenOf(t *client.Timer) string {
	switch t.Kind {
	case "interval":
		return "every " + t.Every
	case "cron":
		return t.Cron
	}
	return t.Kind
}

func lastOf(t *client.Timer) string {
	if t.Last == nil {
		return "-"
	}
	out := t.LastOutcome
	if t.LastReason != "" && t.LastReason != "on_time" {
		out += " (" + t.LastReason + ")"
	}
	return out + ", " + ago(*t.Last) + " ago"
}

type timersAddCmd struct {
	Text         []string `arg:"" optional:"" help:"What the agent is told when it is due."`
	Say          string   `name:"text" help:"The same, as a flag." placeholder:"TEXT"`
	At           string   `help:"Once, at a time: 2027-03-01 09:00, 09:00, or RFC 3339." placeholder:"TIME"`
	In           string   `help:"Once, after a while: 90s, 1h30m, 2d." placeholder:"DURATION"`
	Every        string   `help:"Again and again, so much apart: 30m, 12h." placeholder:"DURATION"`
	Cron         string   `help:"Again and again: minute hour day month weekday." placeholder:"EXPR"`
	Zone         string   `help:"Time zone, such as Asia/Shanghai; default that of the node." placeholder:"ZONE"`
	Name         string   `help:"A short name." placeholder:"NAME"`
	Reminder     bool     `help:"People wait for it: it comes ahead of other work."`
	Level        int      `default:"-1" help:"Level 0 to 3; default by kind."`
	Agent        string   `help:"Agent it is for; default main." placeholder:"NAME"`
	Channel      string   `default:"cli" help:"Channel for its answers; empty for none."`
	Conversation string   `default:"main" help:"Conversation for its answers."`
	Missed       string   `enum:",skip,run_once" default:"" help:"Times that pass while the node is off: skip or run_once."`
	Overlap      string   `enum:",skip,queue" default:"" help:"A time that comes while an earlier one runs: skip or queue."`
}

func (t *timersAddCmd) Run(c *console, node *client.Client) error {
	text := strings.Join(t.Text, " ")
	if t.Say != "" {
		text = t.Say
	}
	a := client.AddTimer{
		Text: text, Name: t.Name, Agent: t.Agent, At: t.At, In: t.In, Every: t.Every, Cron: t.Cron, Zone: t.Zone, Reminder: t.Reminder,
		Channel: t.Channel, Conversation: t.Conversation, Missed: t.Missed, Overlap: t.Overlap,
	}
	if t.Level != -1 {
		a.Level = &t.Level
	}
	if t.Channel == "" {
		a.Conversation = ""
	}
	got, err := node.AddTimer(c.ctx, a)
	if err != nil {
		return err
	}
	return c.show(got, func() { c.printf("%s  next %s\n", got.ID, nextOf(got)) })
}

type timersRemoveCmd struct {
	Timer string `arg:"" help:"Id, or a name that only one has."`
}

func (t *timersRemoveCmd) Run(c *console, node *client.Client) error {
	got, err := node.RemoveTimer(c.ctx, t.Timer)
	if err != nil {
		return err
	}
	return c.show(got, func() { c.printf("%s is removed\n", got.ID) })
}

type timersOrderCmd struct {
	Timer string `arg:"" help:"Id, or a name that only one has."`
}

func (t *timersOrderCmd) Run(c *console, node *client.Client, order verb) error {
	got, err := node.OrderTimer(c.ctx, t.Timer, string(order))
	if err != nil {
		return err
	}
	return c.show(got, func() {
		if order == "run" {
			c.printf("%s runs as %s\n", got.ID, got.LastTask)
			return
		}
		c.printf("%s  next %s\n", got.ID, nextOf(got))
	})
}
