package obs

import (
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Hidden stands where a secret was.
const Hidden = "[hidden]"

// minSecret is the shortest value, in bytes, that is searched for. Anything shorter would blank ordinary words.
const minSecret = 6

// Secrets is a set of values that are replaced by [Hidden] wherever they would be written. Safe for concurrent use;
// with no secret registered a line costs one atomic load.
type Secrets struct {
	mu     sync.Mutex
	values map[string]int // value -> how many owners registered it
	active atomic.Pointer[strings.Replacer]
}

// NewSecrets returns an empty set.
func NewSecrets() *Secrets { return &Secrets{values: make(map[string]int)} }

// Add hides value from now on and reports whether it can be hidden: a value under six bytes cannot, and its owner must
// not let it near a log. A value added twice must be removed twice.
func (s *Secrets) Add(value string) bool {
	if len(value) < minSecret {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[value]++
	if s.values[value] == 1 {
		s.rebuild()
	}
	return true
}

// Remove takes back one Add of value, for instance when a key was replaced. An unknown value is ignored.
func (s *Secrets) Remove(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := s.values[value]; n {
	case 0:
		return
	case 1:
		delete(s.values, value)
	default:
		s.values[value] = n - 1
		return
	}
	s.rebuild()
}

// Clean returns p with every secret replaced. The result is p itself where nothing was found to replace; p is never
// written to.
func (s *Secrets) Clean(p []byte) []byte {
	r := s.active.Load()
	if r == nil {
		return p
	}
	return []byte(r.Replace(string(p)))
}

// CleanString is Clean for text that leaves the process another way, such as an error shown to a person.
func (s *Secrets) CleanString(text string) string {
	if r := s.active.Load(); r != nil {
		return r.Replace(text)
	}
	return text
}

// rebuild makes the replacer for all values in all the forms in which a line can hold them. Longer forms come first,
// so that a secret which begins with another one is hidden whole.
func (s *Secrets) rebuild() {
	forms := make(map[string]struct{}, 4*len(s.values))
	for v := range s.values {
		for _, f := range spellings(v) {
			forms[f] = struct{}{}
		}
	}
	if len(forms) == 0 {
		s.active.Store(nil)
		return
	}
	sorted := make([]string, 0, len(forms))
	for f := range forms {
		sorted = append(sorted, f)
	}
	slices.SortFunc(sorted, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	pairs := make([]string, 0, 2*len(sorted))
	for _, f := range sorted {
		pairs = append(pairs, f, Hidden)
	}
	s.active.Store(strings.NewReplacer(pairs...))
}

// spellings lists how handlers write v: bare, quoted as Go and as JSON do, escaped in a URL, and in base64 (a []byte
// in a struct).
func spellings(v string) []string {
	quoted := strconv.Quote(v)
	out := []string{
		v,
		quoted[1 : len(quoted)-1],
		url.QueryEscape(v),
		url.PathEscape(v),
		base64.StdEncoding.EncodeToString([]byte(v)),
	}
	for _, html := range []bool{true, false} {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(html)
		if err := e.Encode(v); err == nil { // a string always encodes; the check keeps a wrong form out
			t := strings.TrimSuffix(b.String(), "\n")
			out = append(out, t[1:len(t)-1])
		}
	}
	return out
}

// secretKeys are attribute names whose value is never written, registered or not.
var secretKeys = map[string]struct{}{
	"api_key": {}, "apikey": {}, "authorization": {}, "cookie": {}, "password": {}, "secret": {}, "token": {},
}

// hideByKey is the handler hook that blanks attributes which are secret by their name.
func hideByKey(_ []string, a slog.Attr) slog.Attr {
	if _, ok := secretKeys[strings.ToLower(a.Key)]; ok && a.Value.Kind() != slog.KindGroup {
		return slog.String(a.Key, Hidden)
	}
	return a
}
