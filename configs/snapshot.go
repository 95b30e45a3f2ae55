package configs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Origin says where a value comes from.
type Origin string

// The origins, weakest first.
const (
	// OriginDefault is the declaration.
	OriginDefault Origin = "default"
	// OriginStored is the node's store.
	OriginStored Origin = "stored"
	// OriginEnvironment is an environment variable of the process.
	OriginEnvironment Origin = "environment"
)

type entry struct {
	value  Value
	origin Origin
}

// Snapshot is every value in force at one moment. It never changes and may be
// read from any goroutine; it holds secrets in plain, so it stays inside the
// process.
//
// The typed getters are for keys that the program itself declares: asking for an
// undeclared key, or with another type, is a broken invariant and panics. Lookup
// is for names that come from outside.
type Snapshot struct {
	table   *table
	entries map[string]entry // what is not default, by concrete key
	version uint64
	digest  string
}

// Version counts the snapshots of one registry from 1.
func (s *Snapshot) Version() uint64 { return s.version }

// Digest is a hash over all keys and values in force, equal for equal settings.
// Secrets enter it only as a keyed hash.
func (s *Snapshot) Digest() string { return s.digest }

// Lookup returns the value in force of a declared key, and where it comes from.
func (s *Snapshot) Lookup(key string) (Value, Origin, bool) {
	p, _, ok := s.table.find(key)
	if !ok {
		return Value{}, "", false
	}
	if e, ok := s.entries[key]; ok {
		return e.value, e.origin, true
	}
	return p.fallback, OriginDefault, true
}

func (s *Snapshot) get(key string, want ...Type) Value {
	value, _, ok := s.Lookup(key)
	if !ok {
		panic("configs: the key " + key + " is not declared")
	}
	if !slices.Contains(want, value.kind) {
		panic(fmt.Sprintf("configs: the key %s is a %s, not a %s", key, value.kind, want[0]))
	}
	return value
}

// IsSet reports whether key has a value, by default or otherwise.
func (s *Snapshot) IsSet(key string) bool {
	value, _, ok := s.Lookup(key)
	if !ok {
		panic("configs: the key " + key + " is not declared")
	}
	return value.set
}

// String returns a string, text, enum or url; "" when unset.
func (s *Snapshot) String(key string) string {
	return s.get(key, TypeString, TypeText, TypeEnum, TypeURL).text
}

// Int returns an int; 0 when unset.
func (s *Snapshot) Int(key string) int { return int(s.get(key, TypeInt).num) }

// Size returns a number of bytes; 0 when unset.
func (s *Snapshot) Size(key string) int64 { return s.get(key, TypeSize).num }

// Float returns a float; 0 when unset.
func (s *Snapshot) Float(key string) float64 { return s.get(key, TypeFloat).real }

// Bool returns a bool; false when unset.
func (s *Snapshot) Bool(key string) bool { return s.get(key, TypeBool).num != 0 }

// Duration returns a duration; 0 when unset.
func (s *Snapshot) Duration(key string) time.Duration {
	return time.Duration(s.get(key, TypeDuration).num)
}

// List returns a list, which the caller may change; nil when unset.
func (s *Snapshot) List(key string) []string { return slices.Clone(s.get(key, TypeList).list) }

// Secret returns a secret; the zero Secret when unset.
func (s *Snapshot) Secret(key string) Secret { return NewSecret(s.get(key, TypeSecret).text) }

// Location returns the person's time zone, which is that of the machine when
// core.agent.timezone is unset.
func (s *Snapshot) Location() *time.Location {
	name := s.String(KeyAgentTimezone)
	if name == "" {
		return time.Local
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		panic("configs: the checked time zone " + name + " does not load: " + err.Error())
	}
	return location
}

// ToolTimeout returns the time limit of one call of the named tool.
func (s *Snapshot) ToolTimeout(tool string) time.Duration {
	if e, ok := s.entries[strings.Replace(KeyToolsTimeout, wildcard, tool, 1)]; ok {
		return time.Duration(e.value.num)
	}
	return s.Duration(KeyAgentToolTimeout)
}

// ToolDenied reports whether core.tools.denied names the tool, itself or by a
// prefix that ends in *.
func (s *Snapshot) ToolDenied(tool string) bool {
	return slices.ContainsFunc(s.get(KeyToolsDenied, TypeList).list, func(rule string) bool {
		prefix, all := strings.CutSuffix(rule, "*")
		return rule == tool || all && strings.HasPrefix(tool, prefix)
	})
}

// Instances returns the names of the things that exist in the wildcard group with
// the given prefix, such as SourcePrefix, in ascending order: those that have a
// key of the group set and no required one missing.
func (s *Snapshot) Instances(prefix string) []string {
	return slices.DeleteFunc(s.mentioned(prefix), func(name string) bool { return s.missing(prefix, name) != "" })
}

// mentioned returns the names with any key set, sorted.
func (s *Snapshot) mentioned(prefix string) []string {
	names := map[string]bool{}
	for key := range s.entries {
		if p, name, ok := s.table.find(key); ok && p.wild && p.prefix == prefix {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// missing returns the first required key of an instance that has no value.
func (s *Snapshot) missing(prefix, name string) string {
	for _, field := range s.table.fields(prefix) {
		key := field.instance(name)
		if value, _, _ := s.Lookup(key); field.Required && !value.set {
			return key
		}
	}
	return ""
}

// Source is one configured model source. Fields are as declared for
// core.llm.sources.<name>.*.
type Source struct {
	Name          string
	Adapter       string
	BaseURL       string // "" means the adapter's default
	Model         string // "" means the adapter's default
	APIKey        Secret
	Keys          []Secret          // APIKey, if set, and the further keys; used in turn
	Headers       map[string]string // added to each request; never written to
	ExtraBody     string            // a JSON object, or ""
	Options       string            // a JSON object, or ""
	Stream        bool
	Priority      int // lower is tried first
	Enabled       bool
	MaxConcurrent int
	ContextWindow int      // tokens; 0 means what the adapter knows
	MaxTokens     int      // tokens; 0 means the source's own limit
	Temperature   *float64 // nil means that none is sent; never written to
	Thinking      bool
	Vision        bool
	Audio         bool
	Tools         bool
	Price         Price

	TimeoutConnect   time.Duration
	TimeoutFirstByte time.Duration
	TimeoutIdle      time.Duration
	TimeoutTotal     time.Duration
}

// Price is what a million tokens cost; nil means that it is not known.
type Price struct {
	In, Out, Cached, CacheWrite *float64
}

// Sources returns the model sources in the order in which they are tried: by
// priority, then by name. Disabled ones are included.
func (s *Snapshot) Sources() []Source {
	names := s.Instances(SourcePrefix)
	sources := make([]Source, len(names))
	for i, name := range names {
		sources[i] = s.source(name)
	}
	slices.SortStableFunc(sources, func(a, b Source) int { return cmp.Compare(a.Priority, b.Priority) })
	return sources
}

func (s *Snapshot) source(name string) Source {
	key := func(field string) string { return SourceKey(name, field) }
	source := Source{
		Name:          name,
		Adapter:       s.String(key(SourceAdapter)),
		BaseURL:       s.String(key(SourceBaseURL)),
		Model:         s.String(key(SourceModel)),
		APIKey:        s.Secret(key(SourceAPIKey)),
		Priority:      s.Int(key(SourcePriority)),
		Enabled:       s.Bool(key(SourceEnabled)),
		MaxConcurrent: s.Int(key(SourceMaxConcurrent)),
		ContextWindow: s.Int(key(SourceContextWindow)),
		MaxTokens:     s.Int(key(SourceMaxTokens)),
		Thinking:      s.Bool(key(SourceThinkingEnabled)),
		Vision:        s.Bool(key(SourceVision)),
		Audio:         s.Bool(key(SourceAudio)),
		Tools:         s.Bool(key(SourceTools)),
		Stream:        s.Bool(key(SourceStream)),
		ExtraBody:     s.String(key(SourceExtraBody)),
		Options:       s.String(key(SourceOptions)),
		Price: Price{
			In: s.number(key(SourcePriceIn)), Out: s.number(key(SourcePriceOut)),
			Cached: s.number(key(SourcePriceCached)), CacheWrite: s.number(key(SourcePriceCacheWrite)),
		},
		TimeoutConnect:   s.Duration(key(SourceTimeoutConnect)),
		TimeoutFirstByte: s.Duration(key(SourceTimeoutFirstByte)),
		TimeoutIdle:      s.Duration(key(SourceTimeoutIdle)),
		TimeoutTotal:     s.Duration(key(SourceTimeoutTotal)),
	}
	source.Temperature = s.number(key(SourceTemperature))
	source.Headers, _ = ParseHeaders(s.String(key(SourceHeaders))) // checked when it was set
	source.Keys = keyPool(source.APIKey, s.Secret(key(SourceAPIKeys)))
	return source
}

// number is nil for a float that is unset.
func (s *Snapshot) number(key string) *float64 {
	if !s.IsSet(key) {
		return nil
	}
	n := s.Float(key)
	return &n
}

// keyPool gives the keys of a source, each once.
func keyPool(first, more Secret) []Secret {
	texts := append([]string{first.Reveal()}, strings.FieldsFunc(more.Reveal(), func(r rune) bool {
		return r == ',' || unicode.IsSpace(r)
	})...)
	var out []Secret
	for i, text := range texts {
		if text != "" && !slices.Contains(texts[:i], text) {
			out = append(out, NewSecret(text))
		}
	}
	return out
}

// names returns every concrete key: the plain ones, and all fields of instances
// that are mentioned.
func (s *Snapshot) names() []string {
	var names []string
	for _, p := range s.table.all {
		if !p.wild {
			names = append(names, p.Name)
			continue
		}
		for _, name := range s.mentioned(p.prefix) {
			names = append(names, p.instance(name))
		}
	}
	slices.Sort(names)
	return names
}

// seal computes the digest, the last step of building a snapshot.
func (s *Snapshot) seal(vault *Vault) {
	hash := sha256.New()
	for _, key := range s.names() {
		value, _, _ := s.Lookup(key)
		content := []byte(value.text)
		if value.kind == TypeSecret && value.set {
			content = vault.fingerprint(key, value.text)
		}
		fmt.Fprintf(hash, "%s %t %d ", key, value.set, len(content))
		hash.Write(content)
	}
	s.digest = hex.EncodeToString(hash.Sum(nil)[:16])
}

// Changed is one key whose value in force differs between two snapshots.
type Changed struct {
	// Key is the concrete dotted name.
	Key string
	// Old and New are the texts; of secrets only "set" or "unset". Both are the
	// same when a secret was replaced.
	Old, New string
	// Secret marks a secret.
	Secret bool
	// Origin is where the new value comes from.
	Origin Origin
}

// Diff returns the keys whose value differs between two snapshots of one
// registry, sorted by name. A key that exists in one only, because a plugin came
// or went or a thing was added or removed, is in it when it has a value.
func Diff(before, after *Snapshot) []Changed {
	names := slices.Concat(before.names(), after.names())
	slices.Sort(names)
	var changes []Changed
	for _, key := range slices.Compact(names) {
		old, _, _ := before.Lookup(key)
		now, origin, _ := after.Lookup(key)
		if old.set == now.set && old.text == now.text {
			continue
		}
		changes = append(changes, Changed{
			Key: key, Old: old.Text(), New: now.Text(), Origin: origin,
			Secret: old.kind == TypeSecret || now.kind == TypeSecret,
		})
	}
	return changes
}
