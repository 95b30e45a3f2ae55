package configs

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options are what a Registry is made of.
type Options struct {
	// Values keeps plain values, Secrets sealed ones; they may not share keys.
	Values, Secrets KV
	// Vault seals the secrets.
	Vault *Vault
	// Environ is the environment in the form of os.Environ. Only names that start
	// with HOMED_CORE_ or HOMED_PLUGIN_ are looked at.
	Environ []string
	// Now tells the time at which a value is set; nil means time.Now.
	Now func() time.Time
	// Keys are the declarations; nil means Keys().
	Keys []Key
	// Dropped are the names with a successor; nil means DroppedKeys().
	Dropped []Dropped
}

// Registry is the settings of a node. It is safe for concurrent use: Snapshot
// never waits, everything else may wait for the store.
type Registry struct {
	values, secrets KV
	vault           *Vault
	gone            []Dropped
	environ         map[string]string // variables that are keys, or should be
	now             func() time.Time

	mu       sync.Mutex
	table    *table
	stored   map[string]Value  // by concrete key
	facts    map[string]Stored // of stored
	env      map[string]Value
	strays   map[string]bool // stored names that nobody declares
	frozen   map[string]entry
	problems []Problem
	current  atomic.Pointer[Snapshot]
}

// Problem is a stored value or a variable that is not in force, because it does
// not fit any more. The key has its next weaker value meanwhile.
type Problem struct {
	// Key is the dotted name, or the name of the variable when it is no key.
	Key string
	// Origin is where the value is.
	Origin Origin
	// Err says what is wrong, and what to do.
	Err *Error
}

// Open reads the stored values and the environment. A variable under HOMED_CORE_
// that is no key, or whose value is illegal, fails it: the person who starts the
// node can correct that, and nobody else. A stored value that is illegal does not:
// the node must run for a person to correct it; it is in Problems.
func Open(options Options) (*Registry, error) {
	if options.Keys == nil {
		options.Keys = Keys()
	}
	if options.Dropped == nil {
		options.Dropped = DroppedKeys()
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	r := &Registry{
		now:    options.Now,
		values: options.Values, secrets: options.Secrets, vault: options.Vault, gone: options.Dropped,
		environ: settings(options.Environ), frozen: map[string]entry{},
	}
	patterns, err := compileAll(options.Keys, Core)
	if err != nil {
		return nil, err
	}
	t, err := newTable(patterns)
	if err != nil {
		return nil, err
	}
	if err := r.load(t, Core); err != nil {
		return nil, err
	}
	return r, nil
}

func compileAll(keys []Key, owner string) ([]*pattern, error) {
	patterns := make([]*pattern, len(keys))
	for i, key := range keys {
		p, err := compile(key, owner)
		if err != nil {
			return nil, err
		}
		patterns[i] = p
	}
	return patterns, nil
}

// Snapshot returns the values in force. It never blocks.
func (r *Registry) Snapshot() *Snapshot { return r.current.Load() }

// Problems returns what is stored or given but not in force, sorted by key.
func (r *Registry) Problems() []Problem {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.problems)
}

// Register declares the keys of a plugin, in place of those it declared before,
// and takes up what is stored and given for them. A variable of the plugin with
// an illegal value fails it, and nothing is declared. Keys that wait for a restart
// take the value they have now: for a plugin, its own start is the restart.
func (r *Registry) Register(plugin string, keys []Key) (*Change, error) {
	patterns, err := compileAll(keys, plugin)
	if err != nil {
		return nil, err
	}
	return r.declare(plugin, patterns)
}

// Unregister takes back the keys of a plugin. Stored values stay for the next
// time.
func (r *Registry) Unregister(plugin string) (*Change, error) {
	if plugin == Core {
		return nil, &Error{Code: CodeBadKey, Message: "the keys of the core cannot be taken back"}
	}
	return r.declare(plugin, nil)
}

func (r *Registry) declare(plugin string, patterns []*pattern) (*Change, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := slices.DeleteFunc(slices.Clone(r.table.all), func(p *pattern) bool { return p.owner == plugin })
	t, err := newTable(append(kept, patterns...))
	if err != nil {
		return nil, err
	}
	thawed := maps.Clone(r.frozen)
	maps.DeleteFunc(r.frozen, func(key string, _ entry) bool { return strings.HasPrefix(key, "plugin."+plugin+".") })
	before := r.Snapshot()
	if err := r.load(t, plugin); err != nil {
		r.frozen = thawed
		return nil, err
	}
	return r.change(before), nil
}

// load reads the store and the environment under the table t, and puts a new
// snapshot in force. starting is the owner whose keys are read for its start, or
// "": illegal variables of its keys fail the load and leave the registry as it
// was, and its restart keys take the values found. The caller holds the lock, or
// is Open.
func (r *Registry) load(t *table, starting string) error {
	next := &loading{
		registry: r, table: t, stored: map[string]Value{}, facts: map[string]Stored{}, env: map[string]Value{}, strays: map[string]bool{},
		instances: map[string][]string{}, starting: starting,
	}
	if err := r.values.Iterate("", next.plainRecord); err != nil {
		return storeError("read the settings", "", err)
	}
	if err := r.secrets.Iterate("", next.sealedRecord); err != nil {
		return storeError("read the secrets", "", err)
	}
	for _, variable := range slices.Sorted(maps.Keys(r.environ)) {
		next.variable(variable, r.environ[variable])
	}
	next.incomplete()
	if len(next.fatal) > 0 {
		return errors.Join(next.fatal...)
	}
	slices.SortFunc(next.problems, func(a, b Problem) int { return strings.Compare(a.Key, b.Key) })
	r.table, r.stored, r.facts, r.env, r.strays = t, next.stored, next.facts, next.env, next.strays
	r.problems = next.problems
	r.publish(starting)
	return nil
}

// effective returns the value a key would have without regard to restarts.
func (r *Registry) effective(p *pattern, key string) entry {
	if value, ok := r.env[key]; ok {
		return entry{value, OriginEnvironment}
	}
	if value, ok := r.stored[key]; ok {
		return entry{value, OriginStored}
	}
	return entry{p.fallback, OriginDefault}
}

// publish builds the snapshot of the registry's state.
func (r *Registry) publish(starting string) {
	s := &Snapshot{table: r.table, entries: map[string]entry{}, version: 1}
	if last := r.Snapshot(); last != nil {
		s.version = last.version + 1
	}
	keys := map[string]bool{}
	for key := range r.stored {
		keys[key] = true
	}
	for key := range r.env {
		keys[key] = true
	}
	for key := range r.frozen {
		keys[key] = true
	}
	for _, p := range r.table.plain {
		if p.Apply == Restart {
			keys[p.Name] = true
		}
	}
	for key := range keys {
		p, _, ok := r.table.find(key)
		if !ok {
			continue // frozen by a declaration that is gone
		}
		e := r.effective(p, key)
		if p.Apply == Restart {
			e = r.freeze(p, key, e, starting)
		}
		if e.origin != OriginDefault {
			s.entries[key] = e
		}
	}
	s.seal(r.vault)
	r.current.Store(s)
}

// freeze returns the value a restart key had when its owner started. A key of a
// thing that was added later had its default then.
func (r *Registry) freeze(p *pattern, key string, now entry, starting string) entry {
	if e, ok := r.frozen[key]; ok {
		return e
	}
	if p.owner != starting {
		now = entry{p.fallback, OriginDefault}
	}
	r.frozen[key] = now
	return now
}
