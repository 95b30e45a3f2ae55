package lexical

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTerms(t *testing.T) {
	for _, c := range []struct {
		text string
		want string
	}{
		{"My sister's birthday is on May 3rd", "sister birthdai mai 3rd 3"},
		{"Parties, running and CAFÉS", "parti run cafés"},
		{"ＡＢＣ１２３ full width", "abc123 full width"},
		{"host 192.168.1.10 port 8080", "host 192.168.1.10 192 168 1 10 port 8080"},
		{"set max_tokens in /etc/app.conf", "set max_tokens max token etc/app.conf etc app conf"},
		{"mail a.b@example.org!", "mail a.b@example.org b exampl org"},
		{"I don't know O'Brien", "know o brien"},
		{"well-known", "well-known known"},
		{"我妹妹的生日", "我妹 妹 妹妹 妹 妹的 的生 生 生日 日"},
		{"用iPhone15拍的", "用 iphone15 拍 拍的"},
		{"", ""},
		{"… 👍 —", ""},
	} {
		got := strings.Join(Terms(c.text), " ")
		if got != c.want {
			t.Errorf("Terms(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

func TestQueryEvidence(t *testing.T) {
	for _, c := range []struct {
		text string
		want string // evidence terms
	}{
		{"what did I tell you about my sister's birthday?", "sister birthdai"},
		{"Do you remember what I said?", ""},
		{"what did I tell you about that", ""},
		{"我跟你说过我妹妹的生日吗", "妹妹 生日"},
		{"我告诉过你什么", ""},
		{"你还记得吗", ""},
		{"你记得我的猫吗", "猫"},
		{"我告诉过你过年去哪里吗", "过年 年去"},
		{"what about 192.168.1.10", "192.168.1.10 192 168 1 10"},
	} {
		var got []string
		q := ParseQuery(c.text)
		for _, x := range q.Terms {
			if x.Evidence {
				got = append(got, x.Text)
			}
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("evidence of %q = %q, want %q", c.text, s, c.want)
		}
		if q.Empty() != (c.want == "") {
			t.Errorf("Empty(%q) = %v", c.text, q.Empty())
		}
	}
}

func TestStem(t *testing.T) {
	// Pairs that must meet, and pairs that must not.
	for _, p := range [][2]string{
		{"birthdays", "birthday"},
		{"parties", "party"},
		{"running", "runs"},
		{"adopted", "adopting"},
		{"cities", "city"},
		{"hoping", "hope"},
		{"relational", "relate"},
		{"happiness", "happy"},
		{"camping", "camped"},
	} {
		if stem(p[0]) != stem(p[1]) {
			t.Errorf("%s -> %s, %s -> %s", p[0], stem(p[0]), p[1], stem(p[1]))
		}
	}
	for _, p := range [][2]string{{"paint", "pain"}, {"sing", "s"}, {"sister", "sist"}, {"university", "universe's"}} {
		if stem(p[0]) == stem(p[1]) {
			t.Errorf("%s and %s fold together into %s", p[0], p[1], stem(p[0]))
		}
	}
}

func FuzzTerms(f *testing.F) {
	for _, s := range []string{"", "a.b@c", "我妹妹的生日", "\xff\xfe", "a'", "''", strings.Repeat("x", 300), strings.Repeat("長", 200)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		terms := Terms(s)
		for _, x := range terms {
			if x == "" || len(x) > maxTerm || !utf8.ValidString(x) || strings.ContainsRune(x, 0) {
				t.Fatalf("term %q of %q", x, s)
			}
		}
		// What is evidence in a query must be findable in a text that is the query.
		for _, q := range ParseQuery(s).Terms {
			if q.Evidence && !slices.Contains(terms, q.Text) {
				// Asking words are cut out before pairs are made, which joins nothing.
				t.Fatalf("evidence %q of %q is no term of the same text", q.Text, s)
			}
		}
	})
}
