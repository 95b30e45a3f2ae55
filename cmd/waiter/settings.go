package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

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

type providersCmd struct {
	List   providersListCmd   `cmd:"" default:"1" help:"Show the sources in the order they are asked."`
	Add    providersAddCmd    `cmd:"" help:"Test a source and keep it."`
	Test   providersTestCmd   `cmd:"" help:"Ask a source for a live answer."`
	Remove providersRemoveCmd `cmd:"" help:"Forget a source."`
	Reset  providersResetCmd  `cmd:"" help:"End the cooldown of a source."`
}

type providersListCmd struct{}

func (*providersListCmd) Run(c *console, node *client.Client) error {
	got, err := node.Sources(c.ctx)
	if err != nil {
		return err
	}
	return c.show(got, func() { drawSources(c, got) })
}

func drawSources(c *console, got *client.Sources) {
	t := &table{
		head:  []string{"SOURCE", "STATE", "ADAPTER", "MODEL", "ORDER", "KEY", "ACTIVE", "CALLS", "FAILED", "LAST FAILURE"},
		right: map[int]bool{4: true, 6: true, 7: true, 8: true},
		less:  []int{2, 4, 5, 6, 7},
	}
	for _, s := range got.Sources {
		key, last, state := "no", "", s.State
		if s.HasKey {
			key = "yes"
		}
		if s.LastFailure != nil {
			last = s.LastFailure.Kind + ": " + short(clean(s.LastFailure.Message), 40)
		}
		if !s.CoolingUntil.IsZero() {
			state += " " + span(time.Until(s.CoolingUntil))
		}
		t.add(s.Name, cell{state, stateColor(s.State)}, s.Adapter, s.Model, s.Priority, key, s.Active, s.Calls, s.Failed, last)
	}
	t.write(c)
	for _, s := range got.Sources {
		if s.State == "broken" && s.LastFailure != nil { // what to repair does not fit into the table
			c.printf("%s %s\n", c.paint(bad, s.Name+" is broken:"), clean(s.LastFailure.Message))
		}
	}
	for _, f := range got.Found {
		c.printf("%s waiter providers add %s --adapter %s --url %s --model %s\n",
			c.paint(good, "found on this machine:"), f.Name, f.Adapter, f.BaseURL, f.Model)
	}
}

type providersAddCmd struct {
	Name     string `arg:"" help:"Name: lower-case letters, digits, hyphen."`
	Adapter  string `default:"openai" help:"Adapter."`
	URL      string `name:"url" help:"Base URL, such as https://api.example.com/v1."`
	Model    string `help:"Model id."`
	Priority int    `help:"Order: lower is asked first."`
	Parallel int    `help:"Calls at the same time; 0 means the default."`
	Window   int    `help:"Context window in tokens; 0 means unknown."`
	KeyStdin bool   `help:"Read the key from standard input."`
	NoKey    bool   `help:"The source needs no key."`
	Force    bool   `help:"Keep it although its test fails."`
}

// key finds the secret: by flag from standard input, from the environment, or at a prompt without echo. It is never an
// argument, which other processes could read.
func (p *providersAddCmd) key(c *console) (string, error) {
	if p.NoKey {
		return "", nil
	}
	if p.KeyStdin {
		line, err := bufio.NewReader(c.in).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		return strings.TrimSpace(line), nil
	}
	if k := c.env(client.KeyVariable(p.Name)); k != "" {
		return k, nil
	}
	f, ok := c.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return "", fmt.Errorf("no key: set %s, or use --key-stdin or --no-key", client.KeyVariable(p.Name))
	}
	_, _ = fmt.Fprintf(c.errout, "Key of %s (not shown; empty for none): ", p.Name)
	b, err := term.ReadPassword(int(f.Fd()))
	_, _ = fmt.Fprintln(c.errout)
	return strings.TrimSpace(string(b)), err
}

func (p *providersAddCmd) Run(c *console, node *client.Client) error {
	key, err := p.key(c)
	if err != nil {
		return err
	}
	got, err := node.AddSource(c.ctx, client.AddSource{
		Source: client.Source{
			Name: p.Name, Adapter: p.Adapter, BaseURL: p.URL, Model: p.Model, Priority: p.Priority,
			MaxConcurrent: p.Parallel, ContextWindow: p.Window, Enabled: true,
		},
		APIKey: key, Force: p.Force,
	})
	if err != nil {
		return err
	}
	return showTest(c, got)
}

// showTest shows how a source did; one that does not work is bad news.
func showTest(c *console, t *client.Tested) error {
	if err := c.show(t, func() {
		if t.Works {
			model := t.Model
			if model == "" {
				model = "it"
			}
			c.printf("%s %s answered in %s: %s\n", c.paint(good, "works:"), model,
				span(time.Duration(t.TookMS)*time.Millisecond), short(clean(t.Text), 60))
			return
		}
		why := "no answer"
		if t.Failure != nil {
			why = strings.TrimSpace(t.Failure.Kind + ": " + clean(t.Failure.Message) + " " + clean(t.Failure.Hint))
		}
		c.printf("%s %s\n", c.paint(bad, "does not work:"), why)
	}); err != nil {
		return err
	}
	if !t.Works {
		return errUnwell
	}
	return nil
}

type providersTestCmd struct {
	Name string `arg:"" help:"Name of the source."`
}

func (p *providersTestCmd) Run(c *console, node *client.Client) error {
	got, err := node.TestSource(c.ctx, p.Name)
	if err != nil {
		return err
	}
	return showTest(c, got)
}

type providersRemoveCmd struct {
	Name string `arg:"" help:"Name of the source."`
}

func (p *providersRemoveCmd) Run(c *console, node *client.Client) error {
	got, err := node.RemoveSource(c.ctx, p.Name)
	if err != nil {
		return err
	}
	return c.show(got, func() { drawSources(c, got) })
}

type providersResetCmd struct {
	Name string `arg:"" help:"Name of the source."`
}

func (p *providersResetCmd) Run(c *console, node *client.Client) error {
	got, err := node.ResetSource(c.ctx, p.Name)
	if err != nil {
		return err
	}
	return c.show(got, func() { drawSources(c, got) })
}
