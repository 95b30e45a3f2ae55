package api

import (
	"strings"
	"testing"
)

// play feeds pieces; "|" restarts the attempt.
func play(t *Text, pieces ...string) string {
	var out strings.Builder
	for _, p := range pieces {
		if p == "|" {
			t.Restart()
			continue
		}
		out.WriteString(t.Add(p))
	}
	return out.String()
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		name, pieces, shown, final, more string
		replaced                         bool
	}{
		{"plain", "one,two", "onetwo", "onetwo", "", false},
		{"repeated attempt shows nothing twice", "one,two,|,o,netw,o three", "onetwo three", "onetwo three", "", false},
		{"attempt cut short", "one,two,|,on", "onetwo", "onetwo", "", false},
		{"another text", "one,|,other,text", "one", "othertext", "othertext", true},
		{"another text, then the first again", "one,|,oxe,|,one more", "one more", "one more", "", false},
		{"final has more", "one", "one", "one two", " two", false},
		{"final replaces", "one", "one", "two", "two", true},
		{"nothing streamed", "", "", "all", "all", false},
		{"empty final", "one", "one", "", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var x Text
			if got := play(&x, strings.Split(c.pieces, ",")...); got != c.shown {
				t.Errorf("shown %q, want %q", got, c.shown)
			}
			if more, replaced := x.Finish(c.final); more != c.more || replaced != c.replaced {
				t.Errorf("finish %q %v, want %q %v", more, replaced, c.more, c.replaced)
			}
		})
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{`"5m"`: "5m", `1000000`: "1000000", ` true `: "true", `null`: ""} {
		if got := Plain([]byte(in)); got != want {
			t.Errorf("%s gives %q, want %q", in, got, want)
		}
	}
}
