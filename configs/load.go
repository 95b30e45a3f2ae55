package configs

import (
	"fmt"
	"slices"
	"strings"
)

// loading collects what one pass over the store and the environment finds.
type loading struct {
	registry  *Registry
	table     *table
	stored    map[string]Value
	facts     map[string]Stored
	env       map[string]Value
	strays    map[string]bool
	instances map[string][]string // by wildcard prefix, in the order found
	starting  string              // whose illegal variables are fatal
	problems  []Problem
	fatal     []error
}

func (l *loading) problem(key string, origin Origin, err error) {
	e, ok := err.(*Error) //nolint:errorlint // made in this package, never wrapped
	if !ok {
		e = storeError("read "+key, key, err)
	}
	l.problems = append(l.problems, Problem{Key: key, Origin: origin, Err: e})
}

func (l *loading) plainRecord(key string, record []byte) error {
	p, name, ok := l.table.find(key)
	if !ok {
		l.stray(key)
		return nil
	}
	if p.Secret() {
		l.problem(key, OriginStored, &Error{
			Code: CodeDamaged, Key: key, Message: "the secret " + key + " is stored unsealed and is not used",
			Hint: "set it again with `waiter config set " + key + "`, and treat the old one as known to others",
		})
		return nil
	}
	text, facts, err := decodeRecord(record)
	if err != nil {
		l.damaged(key, err)
		return nil
	}
	l.take(p, key, name, text, facts)
	return nil
}

func (l *loading) damaged(key string, err error) {
	l.problem(key, OriginStored, &Error{
		Code: CodeDamaged, Key: key, Message: "the stored value of " + key + " is damaged", Hint: "set it again", Err: err,
	})
}

func (l *loading) sealedRecord(key string, record []byte) error {
	p, name, ok := l.table.find(key)
	if !ok {
		l.stray(key)
		return nil
	}
	if !p.Secret() {
		l.problem(key, OriginStored, &Error{
			Code: CodeDamaged, Key: key, Message: "a sealed value is stored for " + key + ", which is no secret", Hint: "set it again",
		})
		return nil
	}
	wrapped, facts, err := decodeRecord(record)
	if err != nil {
		l.damaged(key, err)
		return nil
	}
	sealed, err := sealedBytes(wrapped)
	if err != nil {
		l.damaged(key, err)
		return nil
	}
	text, err := l.registry.vault.Open(key, sealed)
	if err != nil {
		l.problem(key, OriginStored, err)
		return nil
	}
	l.take(p, key, name, text, facts)
	return nil
}

// take parses a stored text.
func (l *loading) take(p *pattern, key, name, text string, facts Stored) {
	err := l.instance(p, key, name)
	if err == nil {
		var value Value
		if value, err = p.parse(key, text); err == nil {
			l.stored[key], l.facts[key] = value, facts
			return
		}
	}
	l.problem(key, OriginStored, err)
}

// instance notes the name of a wildcard key.
func (l *loading) instance(p *pattern, key, name string) error {
	if !p.wild || slices.Contains(l.instances[p.prefix], name) {
		return nil
	}
	if err := l.table.checkInstance(p, key, name, l.instances[p.prefix]); err != nil {
		return err
	}
	l.instances[p.prefix] = append(l.instances[p.prefix], name)
	return nil
}

// stray notes a stored name that nobody declares. One of a plugin that has not
// declared its keys only waits.
func (l *loading) stray(key string) {
	l.strays[key] = true
	if plugin, ok := pluginOf(key); ok && !l.table.hasOwner(plugin) {
		return
	}
	err := l.table.unknown(l.registry.gone, key, l.instances)
	l.problem(key, OriginStored, err)
}

func (l *loading) variable(variable, text string) {
	p, key, name, ok := l.table.resolveEnv(variable, l.instances)
	if !ok {
		l.unknownVariable(variable)
		return
	}
	err := l.instance(p, key, name)
	if err == nil {
		var value Value
		if value, err = p.parse(key, text); err == nil {
			l.env[key] = value
			return
		}
	}
	l.refuse(p.owner, key, fmt.Errorf("environment variable %s: %w", variable, err), err)
}

// refuse makes an illegal variable fatal for its owner and a problem otherwise.
func (l *loading) refuse(owner, key string, fatal, err error) {
	if owner == l.starting {
		l.fatal = append(l.fatal, fatal)
		return
	}
	l.problem(key, OriginEnvironment, err)
}

func (l *loading) unknownVariable(variable string) {
	err := l.table.unknownEnv(variable)
	if strings.HasPrefix(variable, envPrefix+"CORE_") {
		l.refuse(Core, variable, err, err)
		return
	}
	// It may belong to a plugin that has not declared its keys yet; until then it
	// is shown.
	l.problem(variable, OriginEnvironment, err)
}

// incomplete finds things without a required key.
func (l *loading) incomplete() {
	for prefix, names := range l.instances {
		for _, name := range names {
			for _, field := range l.table.fields(prefix) {
				key := field.instance(name)
				if !field.Required || field.fallback.set || l.stored[key].set || l.env[key].set || l.known(key) {
					continue
				}
				err := requiredError(prefix, name, key)
				if l.onlyFromEnvironment(prefix, name) {
					l.refuse(field.owner, key, err, err)
				} else {
					l.problem(key, OriginStored, err)
				}
			}
		}
	}
}

// known reports whether a problem of key was found already.
func (l *loading) known(key string) bool {
	return slices.ContainsFunc(l.problems, func(p Problem) bool { return p.Key == key })
}

func (l *loading) onlyFromEnvironment(prefix, name string) bool {
	for _, field := range l.table.fields(prefix) {
		if l.stored[field.instance(name)].set {
			return false
		}
	}
	return true
}

func requiredError(prefix, name, key string) *Error {
	return &Error{
		Code: CodeRequired, Key: key, Message: prefix + name + " is not complete: " + key + " is not set",
		Hint: "set " + key + " too, or unset " + prefix + name,
	}
}
