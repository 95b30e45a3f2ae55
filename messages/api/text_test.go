package api

import (
	"strings"
	"testing"
)

// play feeds pieces; "|" restarts the attempt, "#" ends the round. A piece that begins a text of its own is shown after
// a slash.
func play(t *Text, pieces ...string) string {
	var out strings.Builder
	for _, p := range pieces {
		switch p {
		case "|":
			t.Restart()
		case "#":
			t.Round()
		default:
			more, joint := t.Add(p)
			if joint == Fresh {
				out.WriteString("/")
			}
			out.WriteString(more)
		}
	}
	return out.String()
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		name, pieces, shown, final, more string
		joint                            Joint
	}{
		{"plain", "one,two", "onetwo", "onetwo", "", Joined},
		{"plain with its round over", "one,two,#", "onetwo", "onetwo", "", Joined},
		{"repeated attempt shows nothing twice", "one,two,|,o,netw,o three", "onetwo three", "onetwo three", "", Joined},
		{"attempt cut short", "one,two,|,on", "onetwo", "onetwo", "", Joined},
		{"another text", "one,|,other,text", "one", "othertext", "othertext", Replaced},
		{"another text, then the first again", "one,|,oxe,|,one more", "one more", "one more", "", Joined},
		{"final has more", "one", "one", "one two", " two", Joined},
		{"final replaces", "one", "one", "two", "two", Replaced},
		{"nothing streamed", "", "", "all", "all", Joined},
		{"two rounds", "look,#,found", "look/found", "found", "", Joined},
		{"two rounds that say the same", "same,#,sa,me", "same/same", "same", "", Joined},
		{"a round without text", "#,found,#", "found", "found", "", Joined},
		{"the last round not streamed", "look,#", "look", "found", "found", Fresh},
		{"second round made again", "look,#,fo,|,foun,d", "look/found", "found", "", Joined},
		{"empty pieces end nothing", "one,#,,", "one", "one", "", Joined},
	} {
		t.Run(c.name, func(t *testing.T) {
			var x Text
			if got := play(&x, strings.Split(c.pieces, ",")...); got != c.shown {
				t.Errorf("shown %q, want %q", got, c.shown)
			}
			if more, joint := x.Finish(c.final); more != c.more || joint != c.joint {
				t.Errorf("finish %q %v, want %q %v", more, joint, c.more, c.joint)
			}
			if more, joint := x.Finish(c.final); more != "" || joint != Joined {
				t.Errorf("finishing twice shows %q %v", more, joint)
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
