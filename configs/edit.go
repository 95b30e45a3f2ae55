package configs

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"homeagent/messages"
)

// Edit is one wanted change of a stored value.
type Edit struct {
	// Key is the concrete dotted name. With Unset it may also be the name of a
	// whole thing, such as core.llm.sources.home, for all its keys.
	Key string
	// Value is the text; the canonical form is what is stored.
	Value string
	// Unset removes the stored value, so that the default holds.
	Unset bool
}

// Change is what an edit did.
type Change struct {
	// Before and After are the snapshots around it. After is in force.
	Before, After *Snapshot
	// Changed are the values that are different now, sorted by key.
	Changed []Changed
	// Restart are the keys whose stored value differs from the one in force until
	// the next start, sorted; it covers earlier edits too.
	Restart []string
}

// step is one checked edit: a put when value is set, else a delete.
type step struct {
	key   string
	p     *pattern // nil for a stray
	value Value
}

// Set checks all edits, then writes them, and returns what is different. When one
// is not legal nothing is written and the error, or the joined errors, say why. A
// key that the environment sets is refused: the edit would have no effect. by is
// who asks; it is stored beside the values, and nil is nobody in particular.
//
// The writes are ordered so that a crash in between never shows a thing, such as
// a model source, with half of its settings: its required key is written last and
// removed first. An error with CodeStore says that some may have been written; the
// registry then shows what is really stored.
func (r *Registry) Set(by *messages.Principal, edits ...Edit) (*Change, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	steps, err := r.plan(edits)
	if err != nil {
		return nil, err
	}
	before := r.Snapshot()
	writeErr := r.write(steps, by)
	if err := r.load(r.table, ""); err != nil {
		return nil, errors.Join(writeErr, err)
	}
	if writeErr != nil {
		return nil, writeErr
	}
	return r.change(before), nil
}

// Check does what Set does up to the writing.
func (r *Registry) Check(edits ...Edit) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.plan(edits)
	return err
}

func (r *Registry) plan(edits []Edit) ([]step, error) {
	var steps []step
	var failures []error
	for _, edit := range edits {
		planned, err := r.planOne(edit, steps)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		steps = append(steps, planned...)
	}
	if len(failures) == 0 {
		failures = r.checkRequired(steps)
	}
	if len(failures) == 1 {
		return nil, failures[0]
	}
	if len(failures) > 1 {
		return nil, errors.Join(failures...)
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.rank(), b.rank()) })
	return steps, nil
}

// rank orders the writes; see Set.
func (s step) rank() int {
	required := s.p != nil && s.p.Required
	switch {
	case !s.value.set && required:
		return 0
	case !s.value.set:
		return 1
	case !required:
		return 2
	}
	return 3
}

func (r *Registry) planOne(edit Edit, earlier []step) ([]step, error) {
	key := strings.TrimSpace(edit.Key)
	p, name, ok := r.table.find(key)
	switch {
	case !ok && edit.Unset && r.strays[key]:
		return []step{{key: key}}, nil
	case !ok && edit.Unset:
		if steps := r.planThing(key); len(steps) > 0 {
			return steps, nil
		}
	}
	if !ok {
		return nil, r.table.unknown(r.gone, key, r.instances())
	}
	if slices.ContainsFunc(earlier, func(s step) bool { return s.key == key }) {
		return nil, &Error{Code: CodeBadValue, Key: key, Message: key + " is edited twice at once", Hint: "name each key once"}
	}
	if _, overridden := r.env[key]; overridden {
		return nil, &Error{
			Code: CodeOverridden, Key: key, Message: key + " is set by the environment variable " + EnvName(key),
			Hint: "start the node without that variable to change it here",
		}
	}
	if edit.Unset {
		return []step{{key: key, p: p}}, nil
	}
	if p.wild {
		if err := r.table.checkInstance(p, key, name, r.named(p.prefix, earlier)); err != nil {
			return nil, err
		}
	}
	value, err := p.parse(key, edit.Value)
	if err != nil {
		return nil, err
	}
	return []step{{key: key, p: p, value: value}}, nil
}

// planThing removes every stored key of one thing, those with problems too.
func (r *Registry) planThing(key string) []step {
	prefix, ok := r.table.groupOf(key)
	if !ok {
		return nil
	}
	name := strings.TrimPrefix(key, prefix)
	var steps []step
	for _, field := range r.table.fields(prefix) {
		concrete := field.instance(name)
		broken := slices.ContainsFunc(r.problems, func(p Problem) bool { return p.Key == concrete && p.Origin == OriginStored })
		if r.stored[concrete].set || broken {
			steps = append(steps, step{key: concrete, p: field})
		}
	}
	return steps
}

// instances returns the names per wildcard prefix.
func (r *Registry) instances() map[string][]string {
	names := map[string][]string{}
	for _, w := range r.table.wild {
		names[w.prefix] = r.named(w.prefix, nil)
	}
	return names
}

// named returns the instance names of a group, with those of earlier steps.
func (r *Registry) named(prefix string, earlier []step) []string {
	var names []string
	add := func(key string) {
		if p, name, ok := r.table.find(key); ok && p.wild && p.prefix == prefix && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for key := range r.stored {
		add(key)
	}
	for key := range r.env {
		add(key)
	}
	for _, s := range earlier {
		add(s.key)
	}
	slices.Sort(names)
	return names
}

// checkRequired refuses steps that would leave a thing they touch without a
// required key.
func (r *Registry) checkRequired(steps []step) []error {
	after := map[string]bool{}
	for key := range r.stored {
		after[key] = true
	}
	for key := range r.env {
		after[key] = true
	}
	for _, s := range steps {
		after[s.key] = s.value.set
	}
	var failures []error
	checked := map[string]bool{}
	for _, s := range steps {
		if s.p == nil || !s.p.wild {
			continue
		}
		_, name, _ := r.table.find(s.key)
		if thing := s.p.prefix + name; !checked[thing] {
			checked[thing] = true
			failures = append(failures, r.checkThing(s.p.prefix, name, after)...)
		}
	}
	return failures
}

func (r *Registry) checkThing(prefix, name string, after map[string]bool) []error {
	fields := r.table.fields(prefix)
	if !slices.ContainsFunc(fields, func(f *pattern) bool { return after[f.instance(name)] }) {
		return nil // gone as a whole
	}
	var failures []error
	for _, field := range fields {
		key := field.instance(name)
		if field.Required && !field.fallback.set && !after[key] {
			failures = append(failures, requiredError(prefix, name, key))
		}
	}
	return failures
}

func (r *Registry) write(steps []step, by *messages.Principal) error {
	for _, s := range steps {
		if err := r.writeOne(s, by); err != nil {
			return err
		}
	}
	return nil
}

func (r *Registry) writeOne(s step, by *messages.Principal) error {
	wrap := func(err error) error {
		if err == nil {
			return nil
		}
		return storeError("write "+s.key, s.key, err)
	}
	if !s.value.set {
		return wrap(errors.Join(r.values.Delete(s.key), r.secrets.Delete(s.key)))
	}
	if !s.p.Secret() {
		return wrap(r.put(r.values, r.secrets, s.key, s.value.text, by))
	}
	if err := r.guardKeyFile(s.key); err != nil {
		return err
	}
	sealed, err := r.vault.Seal(s.key, s.value.text)
	if err != nil {
		return err
	}
	return wrap(r.put(r.secrets, r.values, s.key, sealedText(sealed), by))
}

// put writes a record, and removes what an earlier program, for which the key was
// a secret or was none, left in the other store.
func (r *Registry) put(kv, other KV, key, text string, by *messages.Principal) error {
	record, err := encodeRecord(text, r.now(), by)
	if err != nil {
		return err
	}
	if err := kv.Put(key, record); err != nil {
		return err
	}
	_, stale, err := other.Get(key)
	if stale && err == nil {
		err = other.Delete(key)
	}
	return err
}

// guardKeyFile refuses to seal under a new key file while values exist that were
// sealed under a lost one: it may still be found, and two would be confusion.
func (r *Registry) guardKeyFile(key string) error {
	exists, err := r.vault.Exists()
	if exists || err != nil {
		return err
	}
	var others []string
	err = r.secrets.Iterate("", func(other string, _ []byte) error {
		if p, _, ok := r.table.find(other); other != key && (!ok || p.Secret()) {
			others = append(others, other)
		}
		return nil
	})
	if err != nil {
		return storeError("read the secrets", key, err)
	}
	if len(others) == 0 {
		return nil
	}
	return &Error{
		Code: CodeKeyFileMissing, Key: key,
		Message: "the key file " + r.vault.Path() + " is gone, and " + strings.Join(others, ", ") + " can only be read with it",
		Hint:    "put the key file back, or unset those keys first",
	}
}

// change compares the snapshot in force with an earlier one.
func (r *Registry) change(before *Snapshot) *Change {
	after := r.Snapshot()
	return &Change{Before: before, After: after, Changed: Diff(before, after), Restart: r.waiting()}
}

// waiting returns the keys that take another value at the next start.
func (r *Registry) waiting() []string {
	var keys []string
	for key, running := range r.frozen {
		if p, _, ok := r.table.find(key); ok && !r.effective(p, key).value.equal(running.value) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
