package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"homeagent/internal/client"
)

type configCmd struct {
	List configListCmd `cmd:"" default:"withargs" help:"Show keys and their values."`
	Get  configGetCmd  `cmd:"" help:"Show one key."`
	Set  configSetCmd  `cmd:"" help:"Set keys, all or none."`
}

type configListCmd struct {
	Prefix string `arg:"" optional:"" help:"Only keys that begin so."`
}

func (l *configListCmd) Run(c *console, node *client.Client) error {
	got, err := node.Config(c.ctx, l.Prefix)
	if err != nil {
		return err
	}
	if len(got.Values) == 0 && l.Prefix != "" && !c.json {
		return fmt.Errorf("no key begins with %q; waiter config list shows all", l.Prefix)
	}
	return c.show(got, func() {
		t := &table{head: []string{"KEY", "VALUE", "UNIT", "FROM", "MEANING"}, less: []int{2, 3}}
		for _, v := range got.Values {
			t.add(v.Key, cell{short(valueText(&v), 40), strong}, v.Unit, v.Origin, short(v.Description, 60))
		}
		t.write(c)
	})
}

// valueText is a value as a person reads it, with the one that the next start brings.
func valueText(v *client.Value) string {
	text := clean(client.Plain(v.Value))
	if len(v.Pending) > 0 {
		text += " (after a restart of the node: " + clean(client.Plain(v.Pending)) + ")"
	}
	return text
}

type configGetCmd struct {
	Key string `arg:"" help:"Dotted name."`
}

func (g *configGetCmd) Run(c *console, node *client.Client) error {
	v, err := node.ConfigKey(c.ctx, g.Key)
	if err != nil {
		return err
	}
	return c.show(v, func() {
		c.printf("%s\n", clean(client.Plain(v.Value)))
		if len(v.Pending) > 0 { // scripts read the value alone
			_, _ = fmt.Fprintf(c.errout, "waiter: after a restart of the node: %s\n", clean(client.Plain(v.Pending)))
		}
	})
}

type configSetCmd struct {
	Pairs []string `arg:"" help:"KEY VALUE, or KEY=VALUE ...; with --default KEY ...."`
	Reset bool     `name:"default" help:"Put the named keys back to their defaults."`
	Stdin bool     `name:"stdin" help:"Read the value of the one key from standard input, for secrets."`
}

func (s *configSetCmd) values(c *console) (map[string]*string, error) {
	out := make(map[string]*string)
	if s.Stdin {
		if len(s.Pairs) != 1 {
			return nil, errors.New("--stdin takes exactly one key")
		}
		b, err := io.ReadAll(c.in)
		if err != nil {
			return nil, err
		}
		v := strings.TrimRight(string(b), "\r\n")
		out[s.Pairs[0]] = &v
		return out, nil
	}
	if s.Reset {
		for _, k := range s.Pairs {
			out[strings.TrimSuffix(k, "=")] = nil
		}
		return out, nil
	}
	if len(s.Pairs) == 2 && !strings.Contains(s.Pairs[0], "=") {
		out[s.Pairs[0]] = &s.Pairs[1]
		return out, nil
	}
	for _, p := range s.Pairs {
		k, v, ok := strings.Cut(p, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("%s has no value: use KEY VALUE or KEY=VALUE, or --default for its default", p)
		}
		out[k] = &v
	}
	return out, nil
}

func (s *configSetCmd) Run(c *console, node *client.Client) error {
	values, err := s.values(c)
	if err != nil {
		return err
	}
	got, err := node.SetConfig(c.ctx, values)
	if err != nil {
		return err
	}
	return c.show(got, func() {
		set := make(map[string]string)
		for _, v := range got.Values {
			set[v.Key] = valueText(&v)
		}
		for _, k := range slices.Sorted(maps.Keys(set)) {
			c.printf("%s = %s\n", k, set[k])
		}
	})
}
