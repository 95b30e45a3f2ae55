package main

import (
	"fmt"

	"homeagent/internal/client"
)

type tokensCmd struct {
	List   tokensListCmd   `cmd:"" default:"1" help:"Show the named tokens."`
	Add    tokensAddCmd    `cmd:"" help:"Make one; it is told this once."`
	Remove tokensRemoveCmd `cmd:"" help:"Take one back, at once."`
}

type tokensListCmd struct{}

func (*tokensListCmd) Run(c *console, node *client.Client) error {
	got, err := node.NamedTokens(c.ctx)
	if err != nil {
		return err
	}
	return c.show(got, func() {
		if len(got.Tokens) == 0 {
			c.printf("no tokens\n")
			return
		}
		t := &table{head: []string{"NAME", "STANDS FOR", "AGE", "EXPIRES"}}
		for i := range got.Tokens {
			k := &got.Tokens[i]
			t.add(k.Name, k.Principal.ID, ago(k.Created), expiryOf(k))
		}
		t.write(c)
	})
}

func expiryOf(t *client.NamedToken) cell {
	switch {
	case t.Expired:
		return cell{"has expired", bad}
	case t.Expires.IsZero():
		return cell{"never", quiet}
	}
	return cell{t.Expires.Local().Format("2006-01-02 15:04"), ""}
}

type tokensAddCmd struct {
	Name      string `arg:"" help:"Name: lower-case letters, digits, hyphen."`
	Principal string `enum:"token,person" default:"token" help:"Who it stands for: token (a program) or person."`
	Expires   string `help:"How long it works, such as 30d; default for ever." placeholder:"TIME"`
}

// Run writes the token alone to the output, so that it can go to a file.
func (a *tokensAddCmd) Run(c *console, node *client.Client) error {
	got, err := node.AddToken(c.ctx, client.AddToken{Name: a.Name, Principal: a.Principal, Expires: a.Expires})
	if err != nil {
		return err
	}
	return c.show(got, func() {
		c.printf("%s\n", got.Token)
		_, _ = fmt.Fprintf(c.errout, "waiter: this is the token of %s; it is not shown again\n", got.Principal.ID)
	})
}

type tokensRemoveCmd struct {
	Name string `arg:"" help:"Name of the token."`
}

func (r *tokensRemoveCmd) Run(c *console, node *client.Client) error {
	got, err := node.RemoveToken(c.ctx, r.Name)
	if err != nil {
		return err
	}
	return c.show(got, func() { c.printf("%s works no more\n", got.Name) })
}
