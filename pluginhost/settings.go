package pluginhost

import (
	"strconv"
	"strings"
	"time"

	"homeagent/configs"
)

// Settings are the values in force of a plugin's keys, as canonical text by dotted name. A key that is missing reads as
// the zero value of its type. Secrets read as "set" or "unset". It is not changed after it was made.
type Settings map[string]string

// Size is a number of bytes.
func (s Settings) Size(key string) int64 {
	n, err := configs.ParseSize(s[key])
	if err != nil {
		return 0
	}
	return n
}

// Duration is a span of time.
func (s Settings) Duration(key string) time.Duration {
	d, err := configs.ParseDuration(s[key])
	if err != nil {
		return 0
	}
	return d
}

// Int is a whole number.
func (s Settings) Int(key string) int {
	n, err := strconv.Atoi(s[key])
	if err != nil {
		return 0
	}
	return n
}

// List is a list; nil when it is unset.
func (s Settings) List(key string) []string {
	if s[key] == "" {
		return nil
	}
	return strings.Split(s[key], ",")
}
