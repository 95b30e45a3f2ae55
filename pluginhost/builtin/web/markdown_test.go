package web

import (
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func base(t testing.TB) *url.URL {
	t.Helper()
	u, err := url.Parse("https://example.com/a/b")
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestMarkdown(t *testing.T) {
	for name, c := range map[string]struct{ html, want string }{
		"paragraphs": {"<p>One\n two</p><p>Three<br>four</p>five", "One two\n\nThree\nfour\n\nfive"},
		"heading":    {"<h1>A <i>b</i></h1><h3>C</h3><p>d", "# A b\n\n### C\n\nd"},
		"list":       {"<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", "- a\n- b\n  - c\n- d"},
		"numbers":    {`<ol start=9><li>a<li><p>b</p><p>c</p></ol>`, "9. a\n10. b\n\n    c"},
		"quote":      {"<p>x<blockquote><p>a</p><p>b</p></blockquote>y", "x\n\n> a\n\n> b\n\ny"},
		"code":       {"<p>Run <code>ls -l</code>.</p><pre>a\n  b\n</pre>c", "Run `ls -l`.\n\n```\na\n  b\n```\n\nc"},
		"fence":      {"<pre>```</pre>", "````\n```\n````"},
		"bold":       {"a <b>b</b>c <strong> </strong>d", "a **b**c d"},
		"link":       {`see <a href="../c?d=(e)">the <b>page</b></a>.`, "see [the **page**](https://example.com/c?d=%28e%29)."},
		"no link":    {`<a href="#x">a</a> <a href="javascript:x()">b</a> <a>c</a> <a href="http://u:p@h/">d</a> <a href="data:,x">e</a>`, "a b c d e"},
		"empty link": {`a <a href="/x"><img src=x></a>b`, "a b"},
		"base":       {`<head><base href="https://other.example/x/"></head><a href="y">a</a>`, "[a](https://other.example/x/y)"},
		"image":      {`a <img alt="a cat" src=x>b<img src=y>`, "a [a cat] b"},
		"table":      {"<table><tr><th>A<th>B</tr><tr><td>1<td><p>2</p><p>3</p></tr></table>x", "| A | B |\n|---|---|\n| 1 | 2 3 |\n\nx"},
		"hidden": {
			`a<script>b</script><style>c</style><p hidden>d</p><p style="display: none">e</p><span aria-hidden=true>f</span><!-- g -->` +
				`<noscript>h</noscript><template>i</template><textarea>j</textarea><span style="font-size:0px">k</span>`, "a",
		},
		"entities":   {"a &amp; b &lt;c&gt; &nbsp;d&#0;&#x200b;", "a & b <c> d\uFFFD\u200b"},
		"controls":   {"a\x01\x1b[31mb\u0085c", "a[31mb c"},
		"cut":        {"<p>a<b>b<a href=/c>d", "ab[d](https://example.com/c)"},
		"empty":      {"", ""},
		"definition": {"<dl><dt>a<dd>b</dl>", "- a\n- b"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := extract([]byte(c.html), base(t)); got != c.want {
				t.Errorf("\n%q\nis  %q\nwant %q", c.html, got, c.want)
			}
		})
	}
}

func TestMainPart(t *testing.T) {
	long := strings.Repeat("word ", 50)
	for name, c := range map[string]struct{ html, has, lacks string }{
		"main":    {"<title> The\nTitle </title><nav>go</nav><div>ad</div><main>" + long + "</main><footer>foot</footer>", "word", "ad"},
		"article": {"<div>ad</div><article>" + long + "</article>", "word", "ad"},
		"several": {"<article>one " + long + "</article><article>two</article><nav>go</nav>", "two", "go"},
		"short":   {"<div>rest</div><main>x</main><nav>go</nav>", "go", "@"},
	} {
		title, got := extract([]byte(c.html), base(t))
		if !strings.Contains(got, c.has) || strings.Contains(got, c.lacks) || name == "main" && title != "The Title" {
			t.Errorf("%s: %q %q", name, title, got)
		}
	}
}

// TestBombs has pages that are made to cost: nested deep, or large by what they repeat.
func TestBombs(t *testing.T) {
	const n = 200_000
	for name, text := range map[string]string{
		"deep":    strings.Repeat("<div>", n) + "end",
		"bold":    strings.Repeat("<b>", n) + "end",
		"lists":   strings.Repeat("<ul><li>", 250) + strings.Repeat("<br>x", n),
		"quotes":  strings.Repeat("<blockquote>", 500) + strings.Repeat("<br>x", n),
		"links":   strings.Repeat("<a href=x><marquee>", 250) + strings.Repeat("<i></i>", n) + "end",
		"strong":  strings.Repeat("<strong>", 250) + strings.Repeat("<i></i>", n) + "end",
		"tables":  strings.Repeat("<table><tr><td>", 150) + strings.Repeat("<i>x</i>", n),
		"attrs":   "<p " + strings.Repeat("a=b ", n) + ">end",
		"unended": strings.Repeat("<a href='x", n),
		"fences":  strings.Repeat("<pre>```````````</pre>", n/10),
	} {
		begin := time.Now()
		_, got := extract([]byte(text), base(t))
		if took := time.Since(begin); took > 20*time.Second || len(got) > 30*len(text) {
			t.Errorf("%s: %v, %d bytes of %d", name, took, len(got), len(text))
		}
	}
}

func FuzzExtract(f *testing.F) {
	for _, s := range []string{
		"<main><h1>a</h1><ul><li><pre>x</pre><table><tr><td><a href='//h/p'>b</a></table>", "<ol start=99999999><li><li><blockquote><li>",
		"<svg><title>x</title></svg><title>y", "<a href='http://[::1'>x</a>", "\xff\xfe<p>\x00", "<template><p>x", "<base href='::'><a href=x>y",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		title, got := extract(text, base(t))
		for _, s := range []string{title, got} {
			if !utf8.ValidString(s) || strings.ContainsAny(s, "\x00\x1b\r") {
				t.Fatalf("%q gives %q", text, s)
			}
		}
		if len(got) > 1000+60*len(text) {
			t.Fatalf("%d bytes give %d", len(text), len(got))
		}
	})
}
