package main

import (
	"strconv"
	"strings"

	"homeagent/internal/client"
)

type pluginsCmd struct {
	List    pluginsListCmd    `cmd:"" default:"1" help:"Show all."`
	Info    pluginsInfoCmd    `cmd:"" help:"Show one with its tools and settings."`
	Enable  pluginsEnableCmd  `cmd:"" help:"Turn one on."`
	Disable pluginsDisableCmd `cmd:"" help:"Turn one off; its settings stay."`
}

type pluginsListCmd struct{}

func (*pluginsListCmd) Run(c *console, node *client.Client) error {
	got, err := node.Plugins(c.ctx)
	if err != nil {
		return err
	}
	broken := false
	err = c.show(got, func() {
		t := &table{head: []string{"PLUGIN", "STATE", "KIND", "TOOLS", "CALLS", "FAILED", "WHAT IT DOES"}, less: []int{2, 4, 5}}
		for _, p := range got.Plugins {
			what := p.Description
			if p.Problem != nil {
				what = p.Problem.Message
			}
			t.add(p.Name, cell{p.State, stateColor(p.State)}, p.Kind, strconv.Itoa(len(p.Tools)),
				strconv.FormatUint(p.Calls, 10), strconv.FormatUint(p.Failed, 10), short(clean(what), 70))
		}
		t.write(c)
	})
	for _, p := range got.Plugins {
		broken = broken || p.Problem != nil
	}
	if err == nil && broken {
		return errUnwell
	}
	return err
}

type pluginsInfoCmd struct {
	Name string `arg:"" help:"Name of the plugin."`
}

func (i *pluginsInfoCmd) Run(c *console, node *client.Client) error {
	got, err := node.Plugin(c.ctx, i.Name)
	if err != nil {
		return err
	}
	return showPlugin(c, got)
}

type pluginsEnableCmd struct {
	Name string `arg:"" help:"Name of the plugin."`
}

func (e *pluginsEnableCmd) Run(c *console, node *client.Client) error {
	got, err := node.TurnPlugin(c.ctx, e.Name, true)
	if err != nil {
		return err
	}
	return showPlugin(c, got)
}

type pluginsDisableCmd struct {
	Name string `arg:"" help:"Name of the plugin."`
}

func (d *pluginsDisableCmd) Run(c *console, node *client.Client) error {
	got, err := node.TurnPlugin(c.ctx, d.Name, false)
	if err != nil {
		return err
	}
	return showPlugin(c, got)
}

// showPlugin shows one plugin; a broken one is not well.
func showPlugin(c *console, p *client.Plugin) error {
	err := c.show(p, func() {
		c.printf("%s  %s  %s\n", c.paint(strong, p.Name), c.paint(stateColor(p.State), p.State), clean(p.Description))
		if p.Problem != nil {
			c.printf("%s %s %s\n", c.paint(quiet, "problem"), clean(p.Problem.Message), clean(p.Problem.Hint))
		}
		if len(p.Tools) > 0 {
			c.printf("%s %s\n", c.paint(quiet, "tools  "), strings.Join(p.Tools, ", "))
		}
		c.printf("%s %d, %d failed, %d under way\n", c.paint(quiet, "calls  "), p.Calls, p.Failed, p.Running)
		t := &table{head: []string{"KEY", "VALUE", "FROM", "MEANING"}, less: []int{2}}
		for _, v := range p.Values {
			t.add(v.Key, cell{short(valueText(&v), 40), strong}, v.Origin, short(v.Description, 60))
		}
		t.write(c)
	})
	if err == nil && p.Problem != nil {
		return errUnwell
	}
	return err
}
