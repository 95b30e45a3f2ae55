package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"homeagent/internal/client"
)

// trustedKey holds the confirmed files, each as NAME.lua@SHA256.
const trustedKey = "core.llm.trusted_adapters"

type providersTrustCmd struct {
	File   string `arg:"" optional:"" help:"The adapter's file, or the name of one in the folder adapters/ of the node; none shows all that are confirmed."`
	Revoke bool   `help:"Take the word back."`
}

// trusted is a confirmed file.
type trusted struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
}

func (p *providersTrustCmd) Run(c *console, node *client.Client) error {
	now, err := node.ConfigKey(c.ctx, trustedKey)
	if err != nil {
		return err
	}
	var value string
	if err := json.Unmarshal(now.Value, &value); err != nil {
		return fmt.Errorf("%s is no text: %w", trustedKey, err)
	}
	list := strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == '\n' || r == ' ' })
	if p.File == "" {
		return showTrusted(c, list)
	}
	name, text, err := p.read(c, node)
	if err != nil {
		return err
	}
	// One word for one file: what it was before is not confirmed any more.
	list = slices.DeleteFunc(list, func(s string) bool { return strings.HasPrefix(s, name+"@") })
	if !p.Revoke {
		sum := sha256.Sum256(text)
		list = append(list, name+"@"+hex.EncodeToString(sum[:]))
	}
	value = strings.Join(list, ",")
	set := map[string]*string{trustedKey: &value}
	if value == "" {
		set[trustedKey] = nil
	}
	if _, err := node.SetConfig(c.ctx, set); err != nil {
		return err
	}
	return showTrusted(c, list)
}

// read gives the name of the file and its text. What is confirmed is what lies on this machine: the node runs a file as
// its own only when it is the same, byte for byte.
func (p *providersTrustCmd) read(c *console, node *client.Client) (name string, text []byte, err error) {
	name = filepath.Base(p.File)
	if !strings.HasSuffix(name, ".lua") {
		name += ".lua"
	}
	if p.Revoke {
		return name, nil, nil
	}
	text, err = os.ReadFile(p.File)
	if errors.Is(err, fs.ErrNotExist) && filepath.Base(p.File) == p.File {
		status, asked := node.Status(c.ctx)
		if asked != nil {
			return "", nil, asked
		}
		if text, err = os.ReadFile(filepath.Join(status.Data, "adapters", name)); errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("there is no file %s here or in the folder adapters/ of the node", name)
		}
	}
	return name, text, err
}

func showTrusted(c *console, list []string) error {
	out := []trusted{}
	for _, s := range list {
		name, sum, _ := strings.Cut(s, "@")
		out = append(out, trusted{name, sum})
	}
	return c.show(out, func() {
		if len(out) == 0 {
			c.printf("no adapter file is confirmed; those of the folder adapters/ run in processes of their own\n")
			return
		}
		t := &table{head: []string{"FILE", "SHA-256"}}
		for _, f := range out {
			t.add(f.File, f.SHA256)
		}
		t.write(c)
	})
}
