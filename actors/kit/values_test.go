package kit

import (
	"testing"
	"time"

	"homeagent/messages"
)

func TestValues(t *testing.T) {
	var v Values
	if v.Duration("a", time.Second) != time.Second || v.Int("n", 3) != 3 {
		t.Error("an unknown key has another value than the one given")
	}
	take := func(kv ...string) {
		m := &messages.ConfigChanged{}
		for i := 0; i < len(kv); i += 2 {
			m.Values = append(m.Values, &messages.ConfigValue{Key: kv[i], Value: kv[i+1]})
		}
		v.Take(m)
	}
	take("a", "1d", "n", "7")
	if v.Duration("a", 0) != 24*time.Hour || v.Int("n", 0) != 7 {
		t.Errorf("got %v and %d", v.Duration("a", 0), v.Int("n", 0))
	}
	take("a", "2s")
	if v.Duration("a", 0) != 2*time.Second || v.Int("n", 0) != 7 {
		t.Errorf("after a change of one: %v and %d", v.Duration("a", 0), v.Int("n", 0))
	}
}
