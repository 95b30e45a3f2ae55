package kit

import (
	"strconv"
	"strings"
	"time"

	"homeagent/configs"
	"homeagent/messages"
)

// Values are settings that a machine has subscribed to at config, by dotted name. The zero value is ready to use; it
// belongs to the machine.
type Values struct{ text map[string]string }

// Subscribe asks config for the keys under the prefixes; the answer and every change come as ConfigChanged, for Take.
func (v *Values) Subscribe(prefixes ...string) Send {
	return Send{To: Path(string(FacilityConfig)), Corr: "config", Msg: &messages.ConfigSubscribe{Prefixes: prefixes}}
}

// Take notes what is in force now.
func (v *Values) Take(m *messages.ConfigChanged) {
	if v.text == nil {
		v.text = make(map[string]string)
	}
	for _, c := range m.GetValues() {
		v.text[c.GetKey()] = c.GetValue()
	}
}

// Known says whether anything is known yet.
func (v *Values) Known() bool { return v.text != nil }

// Text is the value of key as text; empty while the key is not known or not set.
func (v *Values) Text(key string) string { return v.text[key] }

// Duration is the value of key, or the given one while the key is not known. Config gives no value that does not parse.
func (v *Values) Duration(key string, or time.Duration) time.Duration {
	if text, ok := v.text[key]; ok {
		if d, err := configs.ParseDuration(text); err == nil {
			return d
		}
	}
	return or
}

// Int is the value of key, or the given one while the key is not known.
func (v *Values) Int(key string, or int64) int64 {
	if text, ok := v.text[key]; ok {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	}
	return or
}

// List is the value of key; empty while the key is not known or not set.
func (v *Values) List(key string) []string {
	if v.text[key] == "" {
		return nil
	}
	return strings.Split(v.text[key], ",")
}
