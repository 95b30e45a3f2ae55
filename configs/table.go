package configs

import (
	"cmp"
	"slices"
	"strings"
)

// table is an immutable set of declarations, checked against each other.
type table struct {
	all   []*pattern // sorted by name
	plain map[string]*pattern
	wild  []*pattern
	env   map[string]*pattern // environment name of a plain key
	// tails holds, per wildcard group, ends of instance names that would make an
	// environment name mean two keys: with fields thinking_enabled and enabled,
	// the end _thinking.
	tails map[string][]string
}

// newTable checks the declarations and fails with the first collision.
func newTable(patterns []*pattern) (*table, error) {
	t := &table{
		all: slices.Clone(patterns), plain: map[string]*pattern{}, env: map[string]*pattern{}, tails: map[string][]string{},
	}
	slices.SortFunc(t.all, func(a, b *pattern) int { return cmp.Compare(a.Name, b.Name) })
	for i, p := range t.all {
		if i > 0 && t.all[i-1].Name == p.Name {
			return nil, collision(p, t.all[i-1], "the same name")
		}
		if p.wild {
			t.wild = append(t.wild, p)
			continue
		}
		if other, taken := t.env[p.env]; taken {
			return nil, collision(p, other, "the environment name "+p.env)
		}
		t.plain[p.Name], t.env[p.env] = p, p
	}
	for _, w := range t.wild {
		if err := t.checkWild(w); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// checkWild compares a wildcard key with all others and notes its tails.
func (t *table) checkWild(w *pattern) error {
	for _, p := range t.plain {
		if _, hit := w.match(p.Name); hit {
			return collision(p, w, "the same name")
		}
		if _, hit := w.matchEnv(p.env); hit {
			return collision(p, w, "the environment name "+p.env)
		}
	}
	for _, other := range t.wild {
		if other == w {
			continue
		}
		if other.prefix != w.prefix {
			if strings.HasPrefix(other.envHead, w.envHead) {
				return collision(other, w, "names below "+w.prefix)
			}
			continue
		}
		if tail, hit := strings.CutSuffix(w.envTail, other.envTail); hit {
			t.tails[w.prefix] = append(t.tails[w.prefix], strings.ToLower(tail))
		}
	}
	return nil
}

func collision(a, b *pattern, what string) error {
	return &Error{
		Code: CodeCollision, Key: a.Name,
		Message: "the keys " + a.Name + " (of " + a.owner + ") and " + b.Name + " (of " + b.owner + ") claim " + what,
		Hint:    "rename one of them",
	}
}

// find returns the declaration of a concrete key and the name its wildcard
// stands for; it does not check that name.
func (t *table) find(key string) (p *pattern, name string, ok bool) {
	if p, ok := t.plain[key]; ok {
		return p, "", true
	}
	for _, w := range t.wild {
		if name, ok := w.match(key); ok {
			return w, name, true
		}
	}
	return nil, "", false
}

// groupOf returns the wildcard prefix that key, such as core.llm.sources.home,
// names one instance of.
func (t *table) groupOf(key string) (prefix string, ok bool) {
	for _, w := range t.wild {
		if name, hit := strings.CutPrefix(key, w.prefix); hit && name != "" && !strings.Contains(name, ".") {
			return w.prefix, true
		}
	}
	return "", false
}

// fields returns the declarations of one wildcard group.
func (t *table) fields(prefix string) []*pattern {
	var fields []*pattern
	for _, w := range t.wild {
		if w.prefix == prefix {
			fields = append(fields, w)
		}
	}
	return fields
}

// checkInstance checks a name for the wildcard of p against the form, and
// against the names that exist.
func (t *table) checkInstance(p *pattern, key, name string, existing []string) error {
	bad := func(message, hint string) error {
		return &Error{Code: CodeBadName, Key: key, Message: "the name " + quoteValue(name) + " in " + key + " " + message, Hint: hint}
	}
	if !instanceForm.MatchString(name) {
		return bad("is not allowed", "use "+instanceForms)
	}
	plain := foldName(name)
	for _, tail := range t.tails[p.prefix] {
		if strings.HasSuffix(plain, tail) {
			return bad("ends in "+tail+", so that its environment names would mean two keys", "choose another name")
		}
	}
	for _, other := range existing {
		if other != name && foldName(other) == plain {
			return bad("has the same environment names as "+quoteValue(other), "choose another name")
		}
	}
	return nil
}

// unknown explains a name that is not declared.
func (t *table) unknown(gone []Dropped, key string, instances map[string][]string) error {
	if entry, ok := dropped(gone, key); ok {
		return &Error{Code: CodeDroppedKey, Key: key, Message: "there is no key " + key + " any more", Hint: entry.Hint}
	}
	e := &Error{Code: CodeUnknownKey, Key: key, Message: "there is no key " + quoteValue(key)}
	if plugin, ok := pluginOf(key); ok && !t.hasOwner(plugin) {
		e.Hint = "no plugin named " + plugin + " has declared keys; a plugin declares them when it starts"
		return e
	}
	candidates := make([]string, 0, len(t.all))
	for _, p := range t.all {
		candidates = append(candidates, p.Name)
		for _, name := range instances[p.group()] {
			candidates = append(candidates, p.instance(name))
		}
		// A slip beside the wildcard should not be measured against "<name>".
		if segments := strings.Split(key, "."); p.wild {
			if at := strings.Count(p.prefix, "."); at < len(segments) && instanceForm.MatchString(segments[at]) {
				candidates = append(candidates, p.instance(segments[at]))
			}
		}
	}
	slices.Sort(candidates)
	if near := nearest(key, slices.Compact(candidates), 3); len(near) > 0 {
		e.Hint = "did you mean " + strings.Join(near, " or ") + "?"
	} else {
		e.Hint = "`waiter config list` shows all keys"
	}
	return e
}

func (t *table) hasOwner(owner string) bool {
	return slices.ContainsFunc(t.all, func(p *pattern) bool { return p.owner == owner })
}

// pluginOf returns the plugin a dotted name belongs to.
func pluginOf(key string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(key, "plugin.")
	if !ok {
		return "", false
	}
	name, _, ok = strings.Cut(rest, ".")
	return name, ok && name != ""
}
