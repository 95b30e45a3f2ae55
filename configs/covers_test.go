package configs

import "testing"

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		list []string
		name string
		want bool
	}{
		{nil, "time_now", false},
		{[]string{"time_now"}, "time_now", true},
		{[]string{"time_now"}, "time_now_2", false},
		{[]string{"time"}, "time_now", false},
		{[]string{"shell", "time_*"}, "time_now", true},
		{[]string{"time_*"}, "time_", true},
		{[]string{"time_*"}, "my_time_now", false},
		{[]string{"*"}, "anything", true},
		{[]string{"*_now"}, "time_now", false},
		{[]string{""}, "time_now", false},
	} {
		if got := Covers(c.list, c.name); got != c.want {
			t.Errorf("%q covers %s: %v", c.list, c.name, got)
		}
	}
}
