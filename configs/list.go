package configs

import (
	"slices"
	"strings"
)

// Entry shows one key to people. It never holds the value of a secret.
type Entry struct {
	// Key is the concrete dotted name; of a template the name with <name>.
	Key string
	// Value is the text in force; of a secret "set" or "unset"; empty when unset.
	Value string
	// Origin is where the value in force comes from.
	Origin Origin
	// Pending is the text that holds from the next start, when Waiting.
	Pending string
	// Waiting says that the next start changes the value.
	Waiting bool
	// Problem says why a stored or given value is not in force; nil when there is
	// none.
	Problem *Error
	// Stored says when and by whom the stored value was set.
	Stored Stored
	// Environment is the name of the variable that sets the key.
	Environment string
	// Legal describes the legal values.
	Legal string
	// Definition is the declaration.
	Definition Key
}

// Get shows one key. An undeclared one is CodeUnknownKey or CodeDroppedKey.
func (r *Registry) Get(key string) (Entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, name, ok := r.table.find(key)
	if !ok {
		return Entry{}, r.table.unknown(r.gone, key, r.instances())
	}
	if p.wild && !instanceForm.MatchString(name) {
		return Entry{}, r.table.checkInstance(p, key, name, nil)
	}
	return r.entry(p, key), nil
}

// List shows the keys whose name starts with prefix, sorted by name: the plain
// ones, and every field of each thing that is configured. A prefix that fits
// nothing gives an empty list.
func (r *Registry) List(prefix string) []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := r.Snapshot().names()
	for _, problem := range r.problems {
		names = append(names, problem.Key)
	}
	slices.Sort(names)
	var entries []Entry
	for _, key := range slices.Compact(names) {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		if p, _, ok := r.table.find(key); ok {
			entries = append(entries, r.entry(p, key))
		}
	}
	return entries
}

// Templates returns the declarations of the keys that exist once per named thing,
// sorted by name.
func (r *Registry) Templates() []Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	var keys []Key
	for _, w := range r.table.wild {
		keys = append(keys, w.Key)
	}
	return keys
}

func (r *Registry) entry(p *pattern, key string) Entry {
	value, origin, _ := r.Snapshot().Lookup(key)
	e := Entry{
		Key: key, Value: value.Text(), Origin: origin, Environment: EnvName(key), Legal: p.legal(), Definition: p.Key,
		Stored: r.facts[key],
	}
	if running, ok := r.frozen[key]; ok {
		if next := r.effective(p, key).value; !next.equal(running.value) {
			e.Waiting, e.Pending = true, next.Text()
		}
	}
	for _, problem := range r.problems {
		if problem.Key == key {
			e.Problem = problem.Err
		}
	}
	return e
}
