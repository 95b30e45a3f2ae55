package configs

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed defaults/persona.md
var persona string

// Persona returns the system prompt of a node on which core.agent.system_prompt
// is unset, with its placeholders unresolved.
func Persona() string { return persona }

// Placeholders are the facts a prompt may name; they are filled in when a prompt
// is built, so that a text written under one version tells the truth under the
// next.
type Placeholders struct {
	// AgentName is core.agent.name.
	AgentName string
	// NodeName is the name of the node.
	NodeName string
	// KernelVersion and KernelCommit are those of the running program.
	KernelVersion, KernelCommit string
	// SDKVersion is the version of the plugin contract.
	SDKVersion string
}

var placeholderNames = []string{"agent_name", "node_name", "kernel_version", "kernel_commit", "sdk_version"}

func (p Placeholders) value(name string) (string, bool) {
	switch name {
	case "agent_name":
		return p.AgentName, true
	case "node_name":
		return p.NodeName, true
	case "kernel_version":
		return p.KernelVersion, true
	case "kernel_commit":
		return p.KernelCommit, true
	case "sdk_version":
		return p.SDKVersion, true
	}
	return "", false
}

var placeholderForm = regexp.MustCompile(`\{\{\s*([a-z0-9_]+)\s*\}\}`)

// Expand puts the facts into text. What is not a known placeholder stays as it
// is; the keys that hold prompts refuse unknown ones when they are set. Facts are
// not expanded again.
func (p Placeholders) Expand(text string) string {
	return placeholderForm.ReplaceAllStringFunc(text, func(found string) string {
		if value, ok := p.value(strings.TrimSpace(found[2 : len(found)-2])); ok {
			return value
		}
		return found
	})
}

func checkPrompt(text string) error {
	for _, found := range placeholderForm.FindAllStringSubmatch(text, -1) {
		if _, ok := (Placeholders{}).value(found[1]); ok {
			continue
		}
		return fmt.Errorf("a text with the unknown placeholder %s; there are {{%s}}",
			found[0], strings.Join(placeholderNames, "}}, {{"))
	}
	return nil
}
