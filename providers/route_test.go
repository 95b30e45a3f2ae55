package providers_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"homeagent/providers"
)

// TestRouter runs the transcripts in testdata/route*.txt. A line that begins
// with "<" is what the router must say to the line before it.
//
//	sources a:0 b:1 c:2!      sources with priority; ! is disabled, $ costs nothing, @x the print, /k1,k2 the keys
//	begin R [only|first=x|free]  request R begins
//	fail R kind [after=2s] [visible]
//	answer R | drop R         the source of the last verdict answered, or the call was dropped
//	reset NAME | at 30s | list | keys NAME | restart | policy RETRIES WAIT
func TestRouter(t *testing.T) {
	files, err := filepath.Glob("testdata/route*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			s := &routing{r: providers.NewRouter(), plans: map[string]*providers.Plan{}}
			checked := 0
			var said string
			in := bufio.NewScanner(f)
			for n := 1; in.Scan(); n++ {
				line := strings.TrimSpace(in.Text())
				switch {
				case line == "" || strings.HasPrefix(line, "#"):
				case strings.HasPrefix(line, "<"):
					checked++
					if want := strings.TrimSpace(line[1:]); said != want {
						t.Errorf("line %d: router says %q, want %q", n, said, want)
					}
				default:
					said = s.step(t, line)
				}
			}
			if checked == 0 {
				t.Error("nothing was checked")
			}
		})
	}
}

type routing struct {
	r      *providers.Router
	now    time.Duration
	plans  map[string]*providers.Plan
	routes []providers.Route
}

var start = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func (s *routing) time() time.Time { return start.Add(s.now) }

func (s *routing) step(t *testing.T, line string) string {
	t.Helper()
	w := strings.Fields(line)
	switch w[0] {
	case "sources":
		var routes []providers.Route
		for _, d := range w[1:] {
			var q providers.Route
			d, keys, _ := strings.Cut(d, "/")
			if keys != "" {
				q.Keys = strings.Split(keys, ",")
			}
			d, q.Print, _ = strings.Cut(d, "@")
			if q.Free = strings.HasSuffix(d, "$"); q.Free {
				d = d[:len(d)-1]
			}
			if q.Disabled = strings.HasSuffix(d, "!"); q.Disabled {
				d = d[:len(d)-1]
			}
			name, priority, _ := strings.Cut(d, ":")
			q.Name = name
			_, _ = fmt.Sscan(priority, &q.Priority)
			routes = append(routes, q)
		}
		s.routes = routes
		s.r.Set(routes)
		return ""
	case "begin":
		a := providers.Ask{Key: w[1]}
		for _, o := range w[2:] {
			first, ok := strings.CutPrefix(o, "first=")
			switch {
			case ok:
				a.First = first
			case o == "free":
				a.Free = true
			default:
				a.Only = o
			}
		}
		p, v := s.r.Begin(s.time(), a)
		s.plans[w[1]] = p
		return s.verdict(w[1], v)
	case "fail":
		kind, ok := providers.ParseKind(w[2])
		if !ok {
			t.Fatalf("unknown kind %q", w[2])
		}
		f := &providers.Failure{Kind: kind, Message: w[2]}
		for _, o := range w[3:] {
			if d, ok := strings.CutPrefix(o, "after="); ok {
				f.RetryAfter, _ = time.ParseDuration(d)
			}
			f.Visible = f.Visible || o == "visible"
		}
		return s.verdict(w[1], s.r.Failed(s.time(), s.plans[w[1]], f))
	case "answer":
		s.r.Answered(s.plans[w[1]])
		return ""
	case "drop":
		s.r.Dropped(s.plans[w[1]])
		return ""
	case "reset":
		return fmt.Sprint(s.r.Reset(w[1]))
	case "at":
		d, err := time.ParseDuration(w[1])
		if err != nil || d < s.now {
			t.Fatalf("time %q", w[1])
		}
		s.now = d
		return ""
	case "policy":
		n, err := strconv.Atoi(w[1])
		d, err2 := time.ParseDuration(w[2])
		if err != nil || err2 != nil {
			t.Fatalf("policy %q", line)
		}
		s.r.SetPolicy(providers.Policy{Retries: n, MaxWait: d})
		return ""
	case "restart":
		return s.restart()
	case "keys":
		st, _ := s.r.Standing(s.time(), w[1])
		return standings(st.Keys)
	case "list":
		return standings(s.r.Standings(s.time()))
	}
	t.Fatalf("unknown step %q", line)
	return ""
}

func standings(list []providers.Standing) string {
	var out []string
	for _, st := range list {
		text := st.Name + "=" + st.State
		if !st.Until.IsZero() {
			text += " until " + st.Until.Sub(start).String()
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// restart goes on with a new router that knows the marks of the old one, and says
// which sources had any.
func (s *routing) restart() string {
	old := s.r
	s.r = providers.NewRouter()
	s.r.Set(s.routes)
	var had []string
	for _, q := range s.routes {
		print, marks := old.Marks(q.Name)
		if len(marks) > 0 {
			had = append(had, q.Name)
		}
		s.r.Restore(q.Name, print, marks)
	}
	return strings.Join(had, " ")
}

func (s *routing) verdict(key string, v providers.Verdict) string {
	if v.Source == "" {
		return "failed " + providers.KindName(v.Failure.Kind)
	}
	who := v.Source
	if v.Key != "" {
		who += "/" + v.Key
	}
	if v.After > 0 {
		return fmt.Sprintf("%s after %v", who, v.After.Round(100*time.Millisecond))
	}
	return who
}
