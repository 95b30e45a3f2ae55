package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"homeagent/internal/client"
)

type providersCmd struct {
	List   providersListCmd   `cmd:"" default:"1" help:"Show the sources in the order they are asked."`
	Add    providersAddCmd    `cmd:"" help:"Test a source and keep it."`
	Test   providersTestCmd   `cmd:"" help:"Ask a source for a live answer."`
	Remove providersRemoveCmd `cmd:"" help:"Forget a source."`
	Reset  providersResetCmd  `cmd:"" help:"End the cooldown of a source."`
	Probe  providersProbeCmd  `cmd:"" help:"Ask the sources that are not ready for a live answer; those that answer are ready again."`
	Use    providersUseCmd    `cmd:"" help:"Put a source first; the others keep their order."`
	Trust  providersTrustCmd  `cmd:"" help:"Let an adapter file that you have read run in the node itself."`
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
		if len(s.Keys) > 1 {
			ready := 0
			for _, k := range s.Keys {
				if k.State == "ready" {
					ready++
				}
			}
			key = fmt.Sprintf("%d of %d", ready, len(s.Keys))
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
		c.printf("%s %s with the model %s: waiter providers add %s\n",
			c.paint(good, "found on this machine:"), f.Name, f.Model, f.Name)
	}
}

type providersAddCmd struct {
	Name     string `arg:"" help:"Name: lower-case letters, digits, hyphen."`
	Adapter  string `help:"Adapter: openai when it is left out. A server on this machine that goes by NAME brings its own."`
	URL      string `name:"url" help:"Base URL, such as https://api.example.com/v1; left out, the adapter's own."`
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

// local fills in what a model server on this machine says of itself, where one goes by the name and nothing else was
// said of its address.
func (p *providersAddCmd) local(c *console, node *client.Client) error {
	if p.URL != "" || p.Adapter != "" {
		return nil
	}
	got, err := node.Sources(c.ctx)
	if err != nil {
		return err
	}
	for _, f := range got.Found {
		if f.Name == p.Name {
			p.Adapter, p.URL, p.Model, p.NoKey = f.Adapter, f.BaseURL, cmp.Or(p.Model, f.Model), true
			if !c.json {
				c.printf("%s %s at %s, model %s\n", c.paint(quiet, "found on this machine:"), p.Adapter, p.URL, p.Model)
			}
			return nil
		}
	}
	if slices.Contains(localServers, p.Name) {
		return fmt.Errorf("no model server called %s answers on this machine: start it, or say where it is with --url", p.Name)
	}
	return nil
}

// localServers are the names under which model servers on this machine are found.
var localServers = []string{"ollama", "llamacpp", "lmstudio"}

func (p *providersAddCmd) Run(c *console, node *client.Client) error {
	if err := p.local(c, node); err != nil {
		return err
	}
	p.Adapter = cmp.Or(p.Adapter, "openai")
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
	if err := c.show(t, func() { drawTest(c, t) }); err != nil {
		return err
	}
	if !t.Works {
		return errUnwell
	}
	return nil
}

func drawTest(c *console, t *client.Tested) {
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

type providersUseCmd struct {
	Name string `arg:"" help:"Name of the source."`
}

func (p *providersUseCmd) Run(c *console, node *client.Client) error {
	got, err := node.UseSource(c.ctx, p.Name)
	if err != nil {
		return err
	}
	return c.show(got, func() { drawSources(c, got) })
}

type providersProbeCmd struct {
	Name string `arg:"" optional:"" help:"Only this source, whatever its state."`
}

// probed is what came of the probe of one source.
type probed struct {
	Source string `json:"source"`
	*client.Tested
}

func (p *providersProbeCmd) Run(c *console, node *client.Client) error {
	got, err := node.Sources(c.ctx)
	if err != nil {
		return err
	}
	out := []probed{}
	works := true
	for _, s := range got.Sources {
		if p.Name == "" && (s.State == "ready" || s.State == "disabled") || p.Name != "" && p.Name != s.Name {
			continue
		}
		t, err := node.TestSource(c.ctx, s.Name)
		if err != nil {
			return err
		}
		works = works && t.Works
		out = append(out, probed{s.Name, t})
	}
	if p.Name != "" && len(out) == 0 {
		return fmt.Errorf("there is no source %q; waiter providers lists all", p.Name)
	}
	err = c.show(out, func() {
		if len(out) == 0 {
			c.printf("all sources are ready\n")
		}
		for _, r := range out {
			c.printf("%s ", c.paint(strong, r.Source))
			drawTest(c, r.Tested)
		}
	})
	if err == nil && !works {
		return errUnwell
	}
	return err
}
