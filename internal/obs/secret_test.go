package obs

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func TestSecretsLeaveByNoDoor(t *testing.T) {
	const secret = `sk-"quoted"\<&>/key`
	cases := map[string][]any{
		"string":  {"s", "before " + secret + " after"},
		"error":   {"err", fmt.Errorf("dial: %w", errors.New(secret))},
		"bytes":   {"b", []byte(secret)},
		"struct":  {"v", struct{ Inner struct{ Key string } }{struct{ Key string }{secret}}},
		"map":     {"v", map[string]string{"k": secret}},
		"url":     {"u", "http://host/?key=" + url.QueryEscape(secret)},
		"base64":  {"v", base64.StdEncoding.EncodeToString([]byte(secret))},
		"key":     {secret, 1},
		"api_key": {"api_key", "never registered"},
	}
	for name, attrs := range cases {
		for _, f := range []Format{FormatText, FormatJSON} {
			t.Run(name+"/"+string(f), func(t *testing.T) {
				var out bytes.Buffer
				l := open(t, Options{Format: f, Stderr: &out})
				if !l.Secrets().Add(secret) {
					t.Fatal("not accepted")
				}
				l.Logger("x").WithGroup("g").Error("message", attrs...)
				got := out.String()
				if !strings.Contains(got, Hidden) {
					t.Fatalf("nothing was hidden in %s", got)
				}
				for _, piece := range []string{"quoted", "key=never", "registered", base64.StdEncoding.EncodeToString([]byte(secret))} {
					if strings.Contains(got, piece) {
						t.Fatalf("%q shows in %s", piece, got)
					}
				}
			})
		}
	}
}

func TestSecretInTheMessageIsHidden(t *testing.T) {
	var out bytes.Buffer
	l := open(t, Options{Stderr: &out})
	l.Secrets().Add("hunter22")
	l.Logger("x").Info("login with hunter22")
	if strings.Contains(out.String(), "hunter22") {
		t.Fatal(out.String())
	}
}

func TestSecretsAreCounted(t *testing.T) {
	s := NewSecrets()
	if s.Add("short") {
		t.Error("a five-byte value was accepted: it would blank ordinary words")
	}
	s.Add("abcdef")
	s.Add("abcdef")
	s.Add("abcdefghij") // begins with the other: must be hidden whole
	if got := s.CleanString("x abcdefghij y abcdef"); got != "x [hidden] y [hidden]" {
		t.Errorf("got %q", got)
	}
	s.Remove("abcdef")
	s.Remove("never added")
	if got := s.CleanString("abcdef"); got != Hidden {
		t.Errorf("one owner is left, got %q", got)
	}
	s.Remove("abcdef")
	s.Remove("abcdefghij")
	text := []byte("abcdefghij")
	if got := s.Clean(text); &got[0] != &text[0] {
		t.Error("with no secret the line itself must come back")
	}
}

func FuzzClean(f *testing.F) {
	f.Add("secret-value", "a line with secret-value in it")
	f.Add("日本語キー", "x=日本語キー")
	f.Fuzz(func(t *testing.T, secret, line string) {
		s := NewSecrets()
		if !s.Add(secret) {
			return
		}
		in := []byte(line + secret)
		before := string(in)
		out := s.Clean(in)
		if string(in) != before {
			t.Fatal("the input was written to")
		}
		// The replacement's own letters may by chance complete a secret such as "hidden": only then may it show.
		if strings.Contains(string(out), secret) && !strings.ContainsAny(secret, Hidden) {
			t.Fatalf("%q shows in %q", secret, out)
		}
		if !strings.Contains(string(out), Hidden) {
			t.Fatalf("nothing was hidden in %q", out)
		}
	})
}
