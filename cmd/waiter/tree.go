package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"homeagent/internal/client"
)

type treeCmd struct {
	Watch bool          `short:"w" help:"Show it anew until interrupted."`
	Every time.Duration `default:"1s" help:"Pause between two looks."`
	Path  string        `arg:"" optional:"" help:"Only what is below this path."`
}

func (t *treeCmd) Run(c *console, node *client.Client) error {
	if !t.Watch {
		return t.once(c, node)
	}
	tick := time.NewTicker(max(t.Every, 100*time.Millisecond))
	defer tick.Stop()
	for {
		var screen bytes.Buffer
		frame := *c
		frame.out = &screen
		if err := t.once(&frame, node); err != nil {
			if c.ctx.Err() != nil {
				return nil // ended while it looked
			}
			return err
		}
		c.printf("%s", c.frame(screen.String()))
		select {
		case <-tick.C:
		case <-c.ctx.Done():
			return nil
		}
	}
}

// frame is what is written so that a terminal shows text in place of what it showed before, the top of it where not all
// has room. Elsewhere frames follow each other.
func (c *console) frame(text string) string {
	_, room := c.screen()
	if room < 2 || c.json {
		return text
	}
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if room--; len(all) > room { // the cursor stands on a line of its own
		more := fmt.Sprintf("… %d more; waiter tree -w PATH shows a part", len(all)-room+1)
		all = append(all[:room-1:room-1], c.paint(quiet, more))
	}
	// Home, each line with what was behind it gone, and all that was below gone: nothing flickers.
	return "\x1b[H" + strings.Join(all, "\x1b[K\n") + "\x1b[K\n\x1b[J"
}

func (t *treeCmd) once(c *console, node *client.Client) error {
	a, err := node.Tree(c.ctx)
	if err != nil {
		return err
	}
	if t.Path != "" {
		if a = below(a, strings.Trim(t.Path, "/")); a == nil {
			_, _ = fmt.Fprintf(c.errout, "waiter: there is no actor %s; waiter tree shows all\n", t.Path)
			return errUnwell
		}
	}
	return c.show(a, func() { drawTree(c, a) })
}

func below(a *client.Actor, path string) *client.Actor {
	if a.Path == path {
		return a
	}
	for i := range a.Children {
		if got := below(&a.Children[i], path); got != nil {
			return got
		}
	}
	return nil
}

// drawTree draws the actors as a tree with their figures beside it.
func drawTree(c *console, root *client.Actor) {
	t := &table{
		head:  []string{"ACTOR", "STATE", "SINCE", "USER", "CTRL", "HANDLED", "RATE/S", "MEAN", "RESTARTS", "DOES"},
		right: map[int]bool{3: true, 4: true, 5: true, 6: true, 7: true, 8: true},
		less:  []int{2, 7, 4, 5, 6, 3, 8},
	}
	var walk func(a *client.Actor, parent, lead, below string)
	walk = func(a *client.Actor, parent, lead, under string) {
		name := strings.TrimPrefix(strings.TrimPrefix(a.Path, parent), "/")
		if a.Path == "" {
			name = "homed@" + a.Node
		}
		t.add(lead+name, cell{a.State, stateColor(a.State)}, ago(a.Since), a.Mailbox.User, a.Mailbox.Control,
			count(a.Handled), fmt.Sprintf("%.1f", a.Rate), micros(a.MeanUS), restarts(a), cell{does(a), quiet})
		for i := range a.Children {
			mark, next := "├─ ", "│  "
			if i == len(a.Children)-1 {
				mark, next = "└─ ", "   "
			}
			walk(&a.Children[i], a.Path, under+mark, under+next)
		}
	}
	walk(root, "", "", "")
	t.write(c)
}

func stateColor(s string) string {
	switch s {
	case "running", "idle", "ready":
		return good
	case "starting", "suspended", "paused", "restarting", "stopping", "draining":
		return warn
	case "failed", "broken":
		return bad
	}
	return ""
}

func micros(us float64) string {
	switch {
	case us == 0:
		return "-"
	case us < 1000:
		return fmt.Sprintf("%.1fµs", us)
	case us < 1e6:
		return fmt.Sprintf("%.1fms", us/1e3)
	}
	return fmt.Sprintf("%.1fs", us/1e6)
}

func restarts(a *client.Actor) cell {
	if a.Restarts == 0 {
		return cell{text: "0"}
	}
	return cell{fmt.Sprint(a.Restarts), warn}
}

// does is what an actor is about: the message in work when it takes long, else why it failed last and its own line.
func does(a *client.Actor) string {
	if a.CurrentMS >= 100 {
		return fmt.Sprintf("%s for %s", a.Current, span(time.Duration(a.CurrentMS)*time.Millisecond))
	}
	text := clean(a.Summary)
	if a.LastFailure != "" {
		text = strings.TrimSuffix("failed: "+clean(a.LastFailure)+"; "+text, "; ")
	}
	return short(text, 100)
}

type inspectCmd struct {
	Path string `arg:"" help:"Path of the actor."`
}

func (i *inspectCmd) Run(c *console, node *client.Client) error {
	a, err := node.Actor(c.ctx, i.Path)
	if err != nil {
		return err
	}
	return c.show(a, func() {
		row := func(name, text string) {
			if text != "" {
				c.printf("%s %s\n", c.paint(quiet, fmt.Sprintf("%-12s", name)), text)
			}
		}
		row("path", a.Path)
		row("kind", a.Kind)
		row("node", a.Node)
		row("state", c.paint(stateColor(a.State), a.State)+" for "+ago(a.Since))
		row("does", clean(a.Summary))
		row("mailbox", fmt.Sprintf("%d user, %d control, oldest %s", a.Mailbox.User, a.Mailbox.Control,
			span(time.Duration(a.OldestMS)*time.Millisecond)))
		row("handled", fmt.Sprintf("%d, %.1f per second, %s each", a.Handled, a.Rate, micros(a.MeanUS)))
		row("refused", fmt.Sprint(a.Refused))
		row("restarts", fmt.Sprint(a.Restarts))
		row("failure", clean(a.LastFailure))
		row("current", a.Current)
		for _, k := range a.Children {
			row("child", k.Path)
		}
		if len(a.Inner) > 0 {
			var b bytes.Buffer
			if json.Indent(&b, a.Inner, "", "  ") == nil {
				c.printf("\n%s\n", clean(b.String()))
			}
		}
	})
}

type orderCmd struct {
	Path string `arg:"" help:"Path of the actor."`
}

func (o *orderCmd) Run(c *console, node *client.Client, v verb) error {
	order := string(v)
	if order == "kill" {
		order = "stop"
	}
	a, err := node.Order(c.ctx, o.Path, order)
	if err != nil {
		return err
	}
	return c.show(a, func() { c.printf("%s: %s\n", a.Path, a.State) })
}
