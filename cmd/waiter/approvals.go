package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"homeagent/internal/client"
)

type approvalsCmd struct {
	List  approvalsListCmd   `cmd:"" default:"withargs" help:"Show the calls that wait for your word."`
	Show  approvalsShowCmd   `cmd:"" help:"Show one, decided or not."`
	Allow approvalsDecideCmd `cmd:"" help:"Let a call run, once."`
	Deny  approvalsDecideCmd `cmd:"" help:"Do not let a call run."`
}

type approvalsListCmd struct {
	All  bool   `help:"Also those that were decided and are kept."`
	Task string `help:"Only those of this task." placeholder:"ID"`
}

func (l *approvalsListCmd) Run(c *console, node *client.Client) error {
	got, err := node.Approvals(c.ctx, l.All, l.Task)
	if err != nil {
		return err
	}
	return c.show(got, func() {
		if len(got.Approvals) == 0 {
			c.printf("no call waits for your word\n")
		}
		for i := range got.Approvals {
			if i > 0 {
				c.printf("\n")
			}
			drawApproval(c, &got.Approvals[i])
		}
	})
}

type approvalsShowCmd struct {
	ID string `arg:"" help:"Approval."`
}

func (s *approvalsShowCmd) Run(c *console, node *client.Client) error {
	got, err := node.Approval(c.ctx, s.ID)
	if err != nil {
		return err
	}
	return c.show(got, func() { drawApproval(c, got) })
}

type approvalsDecideCmd struct {
	ID   string `arg:"" help:"Approval."`
	Note string `help:"A word to the model." placeholder:"TEXT"`
}

// Run decides about the call that the id names: another content of it has another id.
func (d *approvalsDecideCmd) Run(c *console, node *client.Client, order verb) error {
	a, err := node.Approval(c.ctx, d.ID)
	if err != nil {
		return err
	}
	got, err := node.Decide(c.ctx, a.ID, a.Hash, order == "allow", d.Note)
	if err != nil {
		return err
	}
	return c.show(got, func() { c.printf("%s %s: %s\n", got.ID, got.State, got.Tool) })
}

// drawApproval shows the whole call; nothing of it is cut, and nothing of it can hide.
func drawApproval(c *console, a *client.Approval) {
	color := map[string]string{"pending": warn, "allowed": good}[a.State]
	c.printf("%s  %s  %s (%s)\n", c.paint(strong, visible(a.ID)), c.paint(color, a.State), c.paint(strong, visible(a.Tool)), a.Class)
	line := func(name, text string) {
		if text != "" {
			c.printf("  %s %s\n", c.paint(quiet, fmt.Sprintf("%-7s", name)), text)
		}
	}
	line("for", visible(principals(a)))
	line("in", visible(strings.Trim(a.Channel+"/"+a.Conversation, "/")))
	line("task", visible(a.TaskID+" of "+a.Agent))
	line("why", visible(a.Reason))
	for i, text := range strings.Split(arguments(a), "\n") {
		name := ""
		if i == 0 {
			name = "call"
		}
		line(name, visible(text))
	}
	line("until", untilOf(a))
	if a.DecidedBy != nil {
		line("by", visible(a.DecidedBy.ID)+", "+ago(a.Decided)+" ago")
	}
	line("note", visible(a.Note))
}

func principals(a *client.Approval) string {
	var names []string
	for _, p := range a.Principals {
		name := p.ID
		if name == "" {
			name = "somebody unknown"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "somebody unknown"
	}
	return strings.Join(names, ", ")
}

// arguments are the arguments of a call on lines of their own; those that are no JSON as they came.
func arguments(a *client.Approval) string {
	if len(a.Arguments) == 0 {
		return "(without arguments)"
	}
	var b bytes.Buffer
	if json.Indent(&b, a.Arguments, "", "  ") != nil {
		return string(a.Arguments)
	}
	return b.String()
}

func untilOf(a *client.Approval) string {
	switch {
	case a.State != "pending":
		return ""
	case a.Expires.IsZero():
		return "decided; it does not expire"
	}
	return fmt.Sprintf("%s (%s left)", a.Expires.Local().Format("2006-01-02 15:04"), span(time.Until(a.Expires)))
}

// visible shows what would not be seen, or would change the order of what is: control characters, and those that only
// format, such as zero-width spaces and marks of direction.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\t' || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}
