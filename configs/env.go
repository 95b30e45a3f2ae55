package configs

import (
	"slices"
	"strings"
)

const envPrefix = "HOMED_"

// EnvName returns the name of the environment variable that sets key: HOMED_ and
// the dotted name in upper case, dots and hyphens as underscores.
func EnvName(key string) string {
	return envPrefix + envPart(key)
}

func envPart(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '.' || r == '-':
			return '_'
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		}
		return r
	}, text)
}

// foldName maps an instance name to what is left of it in an environment name.
func foldName(name string) string { return strings.ReplaceAll(name, "-", "_") }

// matchEnv returns the part of an environment name that stands for the wildcard,
// in lower case.
func (p *pattern) matchEnv(variable string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(variable, p.envHead)
	if !ok {
		return "", false
	}
	rest, ok = strings.CutSuffix(rest, p.envTail)
	return strings.ToLower(rest), ok && rest != ""
}

// settings picks the variables that are keys out of an environment in the form of
// os.Environ. The others that start with HOMED_ belong to flags. An empty value
// counts as not given. Of a name given twice the last holds, as for the shell.
func settings(environ []string) map[string]string {
	found := map[string]string{}
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		if !strings.HasPrefix(name, envPrefix+"CORE_") && !strings.HasPrefix(name, envPrefix+"PLUGIN_") {
			continue
		}
		delete(found, name)
		if value != "" {
			found[name] = value
		}
	}
	return found
}

// resolveEnv returns the declaration and the concrete key of a variable. Where
// two fields of a group fit, the longer one is meant; checkInstance keeps the
// names that would fit the other way out.
func (t *table) resolveEnv(variable string, instances map[string][]string) (p *pattern, key, name string, ok bool) {
	if p, ok := t.env[variable]; ok {
		return p, p.Name, "", true
	}
	var best *pattern
	var bestName string
	for _, w := range t.wild {
		if name, ok := w.matchEnv(variable); ok && (best == nil || len(w.suffix) > len(best.suffix)) {
			best, bestName = w, name
		}
	}
	if best == nil {
		return nil, "", "", false
	}
	at := slices.IndexFunc(instances[best.prefix], func(known string) bool { return foldName(known) == bestName })
	if at >= 0 {
		bestName = instances[best.prefix][at]
	}
	return best, best.instance(bestName), bestName, true
}

// unknownEnv explains a variable that is no key.
func (t *table) unknownEnv(variable string) error {
	names := make([]string, len(t.all))
	for i, p := range t.all {
		names[i] = p.env
	}
	hint := "remove it; docs/config.md lists all keys"
	if near := nearest(variable, names, 2); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return &Error{Code: CodeUnknownKey, Key: variable, Message: "the environment variable " + variable + " is no key", Hint: hint}
}
