package configs

import (
	"fmt"
	"io"
	"log/slog"
)

// Redacted is what every rendering of a Secret shows.
const Redacted = "[redacted]"

// Secret is a text that no rendering shows: printing with any verb, JSON, text
// encoding and slog all give Redacted. Reveal is the only way to the text. The
// zero Secret is unset. It is an immutable value; copying is fine.
type Secret struct{ text string }

// NewSecret wraps text; empty text is an unset secret.
func NewSecret(text string) Secret { return Secret{text: text} }

// Reveal returns the text. Call it where the text leaves the process, such as in
// a request header, and nowhere else.
func (s Secret) Reveal() string { return s.text }

// IsSet reports whether there is a text.
func (s Secret) IsSet() bool { return s.text != "" }

// String returns Redacted.
func (s Secret) String() string { return Redacted }

// GoString returns Redacted.
func (s Secret) GoString() string { return Redacted }

// Format writes Redacted for every verb, so that %x or %d shows nothing either.
func (s Secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, Redacted) }

// MarshalJSON returns Redacted as a JSON string.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + Redacted + `"`), nil }

// MarshalText returns Redacted.
func (s Secret) MarshalText() ([]byte, error) { return []byte(Redacted), nil }

// LogValue returns Redacted.
func (s Secret) LogValue() slog.Value { return slog.StringValue(Redacted) }
