package egress_test

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"homeagent/internal/egress"
)

func TestParseURL(t *testing.T) {
	good := map[string]string{
		"https://example.com":                     "https://example.com",
		"HTTP://Example.COM./a?b=c#d":             "http://example.com/a?b=c",
		"https://例子.测试/":                          "https://xn--fsqu00a.xn--0zwm56d/",
		"http://EXAMPLE.com:080/":                 "http://example.com:80/",
		"http://example.com:/":                    "http://example.com/",
		"http://[2606:4700::1111]:8080/":          "http://[2606:4700::1111]:8080/",
		"http://１２７。０。０。１/":                       "http://127.0.0.1/",
		"http://a_b.example/":                     "http://a_b.example/",
		"http://1.2.3.4.example.com/":             "http://1.2.3.4.example.com/",
		"http://[2606:4700:0:0:0:0:0:1111]/":      "http://[2606:4700::1111]/",
		"http://0x7f.example/%2e%2e/?q=http://10": "http://0x7f.example/%2e%2e/?q=http://10",
	}
	for in, want := range good {
		u, err := egress.ParseURL(in)
		if err != nil || u.String() != want {
			t.Errorf("%s: %v, %v, want %s", in, u, err, want)
		}
	}
	bad := []string{
		"", "example.com", "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "http:example.com", "http:///x",
		"http://user@example.com/", "http://user:pass@example.com/", "http://example.com\\@evil.example/", "http://exa mple.com/",
		"http://example.com/\n", "http://2130706433/", "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0177.0.0.1/",
		"http://127.1/", "http://127.0.1/", "http://017700000001/", "http://1.2.3.256/", "http://1.2.3.4.5/", "http://127.0.0.1../",
		"http://[fe80::1%25eth0]/", "http://[::1", "http://[1.2.3.4]/", "http://example.com:0/", "http://example.com:65536/",
		"http://example.com:22/", "http://example.com:6379/", "http://a..b/", "http://.a/", "http://exa%6dple.com%00/",
		"http://" + strings.Repeat("a", 64) + ".example/", "http://example.com/" + strings.Repeat("a", 8<<10), "http://①②⑦.⓪.①/",
		"http://0x/", "http://1.0x7/", "javascript:alert(1)", "http://exa$mple/", "http://ex\u200bample.com:99999/",
	}
	for _, in := range bad {
		u, err := egress.ParseURL(in)
		var e *egress.Error
		if !errors.As(err, &e) || e.Code != egress.CodeBadURL || e.Text == "" {
			t.Errorf("%q: %v, %v", in, u, err)
		}
	}
}

// FuzzParseURL holds that what is taken has one reading: parsed again it is the same, and its host is a plain name or an
// address in its usual form.
func FuzzParseURL(f *testing.F) {
	for _, s := range []string{
		"https://example.com/a?b#c", "http://[::1]:80/", "http://0x7f.1/", "http://a\\@b", "http://１.２.３.４", "http://[::ffff:1.2.3.4%25a]",
		"http://a.:80/", "http://x@y:z@w/", "http://%31%32/", "http://xn--a/", "//a", "http://ａ。/",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := egress.ParseURL(s)
		if err != nil {
			return
		}
		again, err := egress.ParseURL(u.String())
		if err != nil || again.Host != u.Host || again.Scheme != u.Scheme {
			t.Fatalf("%q is %q, and that is %v, %v", s, u, again, err)
		}
		plain, err := url.Parse(u.String())
		if err != nil || plain.Hostname() != u.Hostname() {
			t.Fatalf("%q: another reader sees %v", s, plain)
		}
		host := u.Hostname()
		if ip, err := netip.ParseAddr(host); err == nil {
			if ip.String() != host {
				t.Fatalf("%q: the address %q has another form %q", s, host, ip)
			}
			return
		}
		if strings.ToLower(host) != host || strings.HasSuffix(host, ".") || strings.ContainsAny(host, "%[]@:/\\") {
			t.Fatalf("%q: host %q", s, host)
		}
	})
}

func FuzzParseAllow(f *testing.F) {
	for _, s := range []string{"nas.local:5000", "192.168.0.0/16", "[fd00::1]:80", "10.0.0.1:80", "::1", "a:b:c", "1.2.3.4/40"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := egress.ParseAllow([]string{s})
		if (a == nil) == (err == nil) {
			t.Fatalf("%q: %v, %v", s, a, err)
		}
	})
}
