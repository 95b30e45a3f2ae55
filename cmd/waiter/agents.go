package main

import (
	"strings"

	"homeagent/internal/client"
)

type agentsCmd struct {
	List    agentsListCmd    `cmd:"" default:"1" help:"Show all."`
	Create  agentsCreateCmd  `cmd:"" help:"Create a resident."`
	Send    agentsSendCmd    `cmd:"" help:"Give a resident an input."`
	Inspect agentsInspectCmd `cmd:"" help:"Show one with its queue."`
	Destroy agentsDestroyCmd `cmd:"" help:"End a resident."`
}

type agentsListCmd struct{}

func (*agentsListCmd) Run(c *console, node *client.Client) error {
	got, err := node.Agents(c.ctx)
	if err != nil {
		return err
	}
	return c.show(got, func() {
		t := &table{head: []string{"AGENT", "STATE", "AGE", "FOR", "LAST REPORT"}, less: []int{2, 3}}
		for _, a := range got.Agents {
			t.add(a.Agent, cell{a.State, stateColor(a.State)}, ago(a.Created), short(clean(a.TaskPrompt), 40),
				short(clean(a.LastReport), 50))
		}
		t.write(c)
	})
}

type agentsCreateCmd struct {
	Name     string   `arg:"" help:"Name: lower-case letters, digits, hyphen."`
	Prompt   []string `arg:"" help:"What it is for."`
	Parent   string   `help:"Agent it reports to; default main." placeholder:"NAME"`
	Task     string   `help:"Its first task." placeholder:"TEXT"`
	Outputs  []string `help:"Channels it may use; default all." placeholder:"NAME"`
	Capacity int      `help:"Most tasks that may wait; 0 means the default."`
}

func (a *agentsCreateCmd) Run(c *console, node *client.Client) error {
	got, err := node.CreateAgent(c.ctx, client.CreateAgent{
		Name: a.Name, Parent: a.Parent, TaskPrompt: strings.Join(a.Prompt, " "), Task: a.Task,
		AllowedOutputs: a.Outputs, Capacity: a.Capacity,
	})
	if err != nil {
		return err
	}
	return c.show(got, func() { c.printf("%s\n", got.Agent) })
}

type agentsSendCmd struct {
	Agent string   `arg:"" help:"Path, or bare name of a resident of main."`
	Text  []string `arg:"" help:"The input."`
	Wait  bool     `help:"Wait for its answer."`
}

func (a *agentsSendCmd) Run(c *console, node *client.Client) error {
	s := sendCmd{Text: a.Text, Agent: a.Agent, Wait: a.Wait, Channel: "cli", Conversation: "main"}
	return s.Run(c, node)
}

type agentsInspectCmd struct {
	Agent string `arg:"" help:"Path, or bare name of a resident of main."`
}

func (a *agentsInspectCmd) Run(c *console, node *client.Client) error {
	got, err := node.Agent(c.ctx, a.Agent)
	if err != nil {
		return err
	}
	return c.show(got, func() {
		c.printf("%s  %s\n", c.paint(strong, got.Agent), c.paint(stateColor(got.State), got.State))
		if got.TaskPrompt != "" {
			c.printf("%s %s\n", c.paint(quiet, "for "), clean(got.TaskPrompt))
		}
		for _, n := range got.Notes {
			c.printf("%s %s\n", c.paint(quiet, "note"), clean(n))
		}
		if got.LastReport != "" {
			c.printf("%s %s\n", c.paint(quiet, "said"), clean(got.LastReport))
		}
		if got.Scheduler != nil {
			drawQueue(c, got.Scheduler)
		}
	})
}

type agentsDestroyCmd struct {
	Agent string `arg:"" help:"Path, or bare name of a resident of main."`
	Drop  bool   `help:"End what waits instead of giving it back to the parent."`
}

func (a *agentsDestroyCmd) Run(c *console, node *client.Client) error {
	got, err := node.DestroyAgent(c.ctx, a.Agent, a.Drop)
	if err != nil {
		return err
	}
	return c.show(got, func() { c.printf("%s has ended\n", got.Agent) })
}
