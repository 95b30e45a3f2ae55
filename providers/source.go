package providers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"homeagent/configs"
)

// Source is one configured model endpoint. It is a value; whoever holds one
// does not change it, a new configuration makes a new one.
type Source struct {
	// Name of the source: lower-case letters, digits, underscore, hyphen.
	Name string
	// Adapter that speaks to it.
	Adapter string
	// BaseURL is where the adapter's endpoint is appended; empty means the
	// adapter's default.
	BaseURL string
	// Model is the vendor's model id; empty means the adapter's default.
	Model string
	// APIKey is asked once per call, so that a changed key holds at once. Nil or
	// an unset secret sends none.
	APIKey func() configs.Secret
	// Keys are used in turn, call by call, where there are several; APIKey is
	// asked for what a single call sends. See WithKey.
	Keys []configs.Secret
	// Headers are added to each request; they win over the adapter's.
	Headers map[string]string
	// Extra is a JSON object that is merged into each request body and wins:
	// objects field by field, null removes, anything else replaces.
	Extra []byte
	// Options is a JSON object of what the adapter leaves to be set, such as a
	// region; each field takes the place of the adapter's own, null removes it.
	Options []byte
	// Connect bounds connecting with TLS, FirstByte the wait from then to the
	// first byte of the answer, Idle each silence after it, Total the call.
	// Zero takes 10 s, 2 min, 1 min, 10 min.
	Connect, FirstByte, Idle, Total time.Duration
	// Priority orders sources: lower is asked first, equal ones by name.
	Priority int
	// MaxConcurrent is how many calls may be open; zero means 8.
	MaxConcurrent int
	// ContextWindow of the model in tokens; zero means unknown.
	ContextWindow int
	// MaxTokens of an answer; zero leaves it to the source.
	MaxTokens int
	// Temperature; nil sends none.
	Temperature *float64
	// Thinking says how much the model is asked to think, where the adapter can
	// ask: empty leaves it to the server, else one of Efforts.
	Thinking string
	// Vision and Audio tell what media the model takes.
	Vision, Audio bool
	// NoTools leaves out the tools of a request, for models that cannot call any.
	NoTools bool
	// Price of its tokens.
	Price configs.Price
	// Whole asks for answers in one piece instead of streams, for servers whose
	// streams are broken.
	Whole bool
	// Disabled sources are kept but not asked.
	Disabled bool
}

// The default limits of a source.
const (
	DefaultConnect       = 10 * time.Second
	DefaultFirstByte     = 2 * time.Minute
	DefaultIdle          = time.Minute
	DefaultTotal         = 10 * time.Minute
	DefaultMaxConcurrent = 8
)

func (s Source) filled() Source {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&s.Connect, DefaultConnect}, {&s.FirstByte, DefaultFirstByte}, {&s.Idle, DefaultIdle}, {&s.Total, DefaultTotal}} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if s.MaxConcurrent <= 0 {
		s.MaxConcurrent = DefaultMaxConcurrent
	}
	return s
}

func (s Source) key() configs.Secret {
	if s.APIKey == nil {
		return configs.Secret{}
	}
	return s.APIKey()
}

// WithKey gives the source with the one key of its pool that has a print; an
// unknown print, as of a key that was replaced meanwhile, leaves the first.
func (s Source) WithKey(print string) Source {
	for _, k := range s.Keys {
		if KeyPrint(k) == print {
			s.APIKey = func() configs.Secret { return k }
		}
	}
	return s
}

// KeyPrint tells keys apart without giving them away.
func KeyPrint(k configs.Secret) string {
	sum := sha256.Sum256([]byte("key of a model source:" + k.Reveal()))
	return hex.EncodeToString(sum[:6])
}

// KeyPrints are those of the pool, in order.
func (s Source) KeyPrints() []string {
	var out []string
	for _, k := range s.Keys {
		out = append(out, KeyPrint(k))
	}
	return out
}

// Free tells that asking the source costs no money: it is priced at nothing, or
// it has no price and runs on this machine.
func (s Source) Free() bool {
	if in, out := s.Price.In, s.Price.Out; in != nil || out != nil {
		return (in == nil || *in == 0) && (out == nil || *out == 0)
	}
	if s.Adapter == OfflineName {
		return true
	}
	u, err := url.Parse(s.BaseURL)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// Check validates a source by itself; the error wraps ErrSource and names the
// field. Whether the adapter exists and the server answers is not asked.
func (s Source) Check() error {
	bad := func(field, why string) error {
		return fmt.Errorf("%w %q: %s: %s", ErrSource, s.Name, field, why)
	}
	if !nameForm.MatchString(s.Name) {
		return bad("name", "use lower-case letters, digits, hyphen and underscore, at most 32")
	}
	if s.Adapter == "" {
		return bad("adapter", "missing")
	}
	if s.BaseURL != "" {
		if err := checkBase(s.BaseURL); err != nil {
			return bad("base_url", err.Error())
		}
	}
	for name, value := range s.Headers {
		if name == "" || textproto.TrimString(name) != name || strings.ContainsAny(name, " :\r\n") {
			return bad("headers", fmt.Sprintf("%q is no header name", name))
		}
		if strings.ContainsAny(value, "\r\n") {
			return bad("headers", fmt.Sprintf("the value of %s has a line end", http.CanonicalHeaderKey(name)))
		}
	}
	for field, text := range map[string][]byte{"extra_body": s.Extra, "options": s.Options} {
		var m map[string]json.RawMessage
		if len(text) > 0 && json.Unmarshal(text, &m) != nil {
			return bad(field, "not a JSON object")
		}
	}
	if s.Thinking != "" && !slices.Contains(Efforts, s.Thinking) {
		return bad("thinking", "legal are "+strings.Join(Efforts, ", "))
	}
	return nil
}

// Efforts are what a source or a request may say of thinking.
var Efforts = []string{"off", "on", "minimal", "low", "medium", "high", "max"}

func checkBase(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("the scheme must be http or https")
	case u.Host == "":
		return fmt.Errorf("no host")
	case u.User != nil:
		return fmt.Errorf("put the key into api_key, not into the address")
	case u.Fragment != "":
		return fmt.Errorf("a fragment has no meaning here")
	}
	return nil
}

// join puts an adapter's endpoint onto a base; a query of the base is kept.
func join(base, endpoint string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", fmt.Errorf("%w: base_url: not a URL", ErrSource)
	}
	path, query, _ := strings.Cut(endpoint, "?")
	if path != "" {
		raw := strings.TrimRight(u.EscapedPath(), "/") + "/" + strings.TrimLeft(path, "/")
		plain, err := url.PathUnescape(raw)
		if err != nil {
			return "", fmt.Errorf("%w: the path %q is not escaped as it should be", ErrSource, path)
		}
		u.Path, u.RawPath = plain, raw
	}
	if query != "" {
		if u.RawQuery != "" {
			query = u.RawQuery + "&" + query
		}
		u.RawQuery = query
	}
	return u.String(), nil
}
