package kernel

import (
	"fmt"
	"slices"
	"strings"

	"homeagent/configs"
)

// Variables are the names in the environment that stand for flags; those of keys begin with HOMED_CORE_ or HOMED_PLUGIN_.
// The slice belongs to the caller.
func Variables() []string {
	return []string{"HOMED_DATA", "HOMED_LISTEN", "HOMED_LOG", "HOMED_NAME", "HOMED_PROFILE", "HOMED_RESERVE"}
}

// misspelt is a variable that looks like one of ours and is none.
type misspelt struct {
	name string
	// near are names that may have been meant.
	near []string
}

// hint says what to do about it.
func (m misspelt) hint() string {
	if len(m.near) == 0 {
		return "remove it; homed run --help and docs/config.md name all"
	}
	return fmt.Sprintf("did you mean %s?", strings.Join(m.near, " or "))
}

// strange lists the variables that nobody reads. Those of keys are left to configs, which refuses wrong ones.
func strange(environ []string) []misspelt {
	known := Variables()
	candidates := slices.Clone(known)
	for _, k := range configs.Keys() {
		if !strings.Contains(k.Name, "*") {
			candidates = append(candidates, configs.EnvName(k.Name))
		}
	}
	var out []misspelt
	for _, line := range environ {
		name, _, _ := strings.Cut(line, "=")
		switch {
		case !strings.HasPrefix(name, "HOMED_"), slices.Contains(known, name),
			strings.HasPrefix(name, "HOMED_CORE_"), strings.HasPrefix(name, "HOMED_PLUGIN_"):
			continue
		}
		out = append(out, misspelt{name, configs.Nearest(name, candidates, 2)})
	}
	return out
}

// wrongKeys says what is wrong with the variables of core keys; nil when nothing is.
func wrongKeys(environ []string) error {
	core := slices.DeleteFunc(slices.Clone(environ), func(line string) bool { return !strings.HasPrefix(line, "HOMED_CORE_") })
	_, err := configs.Open(configs.Options{
		Values: configs.NewMapKV(), Secrets: configs.NewMapKV(), Vault: configs.NewVault(""), Environ: core,
	})
	return err
}
