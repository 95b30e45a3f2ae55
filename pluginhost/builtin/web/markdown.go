package web

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// hidden are the elements whose content is not for readers.
var hidden = map[string]bool{
	"script": true, "style": true, "noscript": true, "template": true, "svg": true, "math": true, "iframe": true, "object": true,
	"embed": true, "canvas": true, "head": true, "select": true, "button": true, "dialog": true, "audio": true, "video": true,
}

// around are the elements beside the text of a page: how to go elsewhere, and what else there is.
var around = map[atom.Atom]bool{atom.Nav: true, atom.Aside: true, atom.Footer: true}

const (
	// enough text, in bytes, for the main part of a page to stand for it.
	enough = 200
	// maxIndent of lists and quotes, so that text that is nested deep does not swell.
	maxIndent = 6
	// maxLink is the longest text, and address, of a link.
	maxLink = 500
)

// extract makes Markdown of a page. Its length is at most a small multiple of the page's.
func extract(text []byte, base *url.URL) (title, markdown string) {
	doc := parse(text)
	if t := first(doc, func(n *html.Node) bool { return n.DataAtom == atom.Title && n.Namespace == "" }); t != nil {
		title = clip(line(clean(inner(t))), 300)
	}
	if b := first(doc, func(n *html.Node) bool { return n.DataAtom == atom.Base }); b != nil {
		if to, err := base.Parse(attr(b, "href")); err == nil {
			base = to
		}
	}
	main := first(doc, func(n *html.Node) bool { return n.DataAtom == atom.Main || attr(n, "role") == "main" })
	if main == nil {
		main = only(doc, atom.Article)
	}
	if main != nil {
		if out := render(main, base, false); len(out) >= enough {
			return title, out
		}
	}
	if out := render(doc, base, true); len(out) >= enough {
		return title, out
	}
	return title, render(doc, base, false)
}

// first finds an element in the order of the page.
func first(n *html.Node, is func(*html.Node) bool) *html.Node {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && is(d) {
			return d
		}
	}
	return nil
}

// only is the one element of its kind; nil when there are none or several.
func only(n *html.Node, of atom.Atom) *html.Node {
	var found *html.Node
	for d := range n.Descendants() {
		if d.DataAtom == of {
			if found != nil {
				return nil
			}
			found = d
		}
	}
	return found
}

func inner(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// small is the text within an element that holds few nodes and little text, as a mark or a link does. Only such elements
// are read ahead, so that what is nested does not cost more than what is not.
func small(n *html.Node) (string, bool) {
	var b strings.Builder
	nodes := 0
	for d := range n.Descendants() {
		if nodes++; nodes > 50 || b.Len() > maxLink {
			return "", false
		}
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String(), b.Len() <= maxLink
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}

// line is a text on one line.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }

// writer writes Markdown: words are separated by one space, blocks by one empty line.
type writer struct {
	b      strings.Builder
	base   *url.URL
	skip   bool // leave out what stands around the text
	prefix []string
	lists  []int  // numbers of the lists around; 0 for one without numbers
	gap    int    // line ends owed before the next word
	space  bool   // a space is owed
	mark   string // of the list item that begins with the next word
	pre    bool
	cell   bool // within a row of a table: everything is one line
	inLink bool // within a link: there is no other
}

func render(n *html.Node, base *url.URL, skip bool) string {
	w := &writer{base: base, skip: skip}
	w.node(n)
	return strings.TrimSpace(clean(w.b.String()))
}

func (w *writer) children(n *html.Node) {
	for c := range n.ChildNodes() {
		w.node(c)
	}
}

func (w *writer) node(n *html.Node) {
	switch n.Type {
	case html.TextNode:
		w.text(n.Data)
	case html.DocumentNode:
		w.children(n)
	case html.ElementNode:
		if hidden[n.Data] || w.skip && around[n.DataAtom] || unseen(n) {
			return
		}
		w.element(n)
	case html.ErrorNode, html.CommentNode, html.DoctypeNode, html.RawNode: // no text
	}
}

// unseen are elements that a reader does not see: text that is there for machines alone has no place before a model.
func unseen(n *html.Node) bool {
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "aria-hidden":
			return a.Val == "true"
		case "style":
			s := strings.ToLower(strings.ReplaceAll(a.Val, " ", ""))
			if strings.Contains(s, "display:none") || strings.Contains(s, "visibility:hidden") || strings.Contains(s, "font-size:0") {
				return true
			}
		}
	}
	return false
}

func (w *writer) element(n *html.Node) {
	switch n.DataAtom {
	case atom.Br:
		w.owe(1)
	case atom.Hr:
		w.block(2, func() { w.text("---") })
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.block(2, func() {
			w.word(strings.Repeat("#", int(n.Data[1]-'0')))
			w.space = true
			w.oneLine(n)
		})
	case atom.Pre:
		w.code(n)
	case atom.Code, atom.Kbd, atom.Samp:
		w.around("`", n)
	case atom.B, atom.Strong:
		w.around("**", n)
	case atom.Ul, atom.Ol, atom.Menu, atom.Dl:
		w.list(n)
	case atom.Li, atom.Dt, atom.Dd:
		w.item(n)
	case atom.Blockquote:
		w.block(2, func() { w.indented("> ", n) })
	case atom.A:
		w.link(n)
	case atom.Img:
		if alt := line(attr(n, "alt")); alt != "" {
			w.text(" [" + clip(alt, 200) + "] ")
		}
	case atom.Tr:
		w.row(n)
	case atom.Input, atom.Textarea: // what a reader may fill in
	default:
		if blocks[n.DataAtom] {
			w.block(2, func() { w.children(n) })
			return
		}
		w.children(n)
	}
}

var blocks = map[atom.Atom]bool{
	atom.P: true, atom.Div: true, atom.Section: true, atom.Article: true, atom.Main: true, atom.Header: true, atom.Footer: true,
	atom.Nav: true, atom.Aside: true, atom.Figure: true, atom.Figcaption: true, atom.Table: true, atom.Form: true, atom.Fieldset: true,
	atom.Details: true, atom.Summary: true, atom.Address: true, atom.Body: true, atom.Html: true, atom.Caption: true,
}

// owe asks for line ends before the next word.
func (w *writer) owe(n int) {
	if w.cell {
		w.space = true
		return
	}
	if w.mark != "" {
		n = 1 // the mark and the first word of its item stay together
	}
	w.gap = max(w.gap, n)
}

func (w *writer) block(n int, do func()) {
	w.owe(n)
	do()
	w.owe(n)
}

// text writes words with the spaces between them as they are owed.
func (w *writer) text(s string) {
	if w.pre {
		w.lines(s)
		return
	}
	for s != "" {
		end := strings.IndexFunc(s, unicode.IsSpace)
		if end == 0 {
			w.space = true
			s = strings.TrimLeftFunc(s, unicode.IsSpace)
			continue
		}
		if end < 0 {
			end = len(s)
		}
		w.word(s[:end])
		s = s[end:]
	}
}

// word writes text without spaces, after what is owed.
func (w *writer) word(s string) {
	switch {
	case w.gap > 0 && w.b.Len() > 0:
		for range w.gap - 1 {
			w.b.WriteString("\n")
		}
		w.newLine()
	case w.mark != "" && w.b.Len() > 0:
		w.newLine()
	case w.b.Len() == 0:
		w.begin()
	case w.space:
		w.b.WriteString(" ")
	}
	w.gap, w.space = 0, false
	w.b.WriteString(s)
}

func (w *writer) newLine() {
	w.b.WriteString("\n")
	w.begin()
}

// begin writes what stands before a line.
func (w *writer) begin() {
	last := len(w.prefix) - 1
	for i, p := range w.prefix {
		if i == last && w.mark != "" {
			p = w.mark
		}
		w.b.WriteString(p)
	}
	w.mark = ""
}

// lines writes text with its own line ends.
func (w *writer) lines(s string) {
	for i, l := range strings.Split(s, "\n") {
		if i > 0 {
			w.newLine()
		}
		w.b.WriteString(l)
	}
}

func (w *writer) code(n *html.Node) {
	if w.cell || w.pre {
		w.children(n)
		return
	}
	text := strings.Trim(inner(n), "\n")
	if strings.TrimSpace(text) == "" {
		return
	}
	fence := "```"
	for strings.Contains(text, fence) && len(fence) < 10 {
		fence += "`"
	}
	w.block(2, func() {
		w.word(fence)
		w.newLine()
		w.lines(text)
		w.newLine()
		w.b.WriteString(fence)
	})
}

// around sets marks around text, if there is any.
func (w *writer) around(mark string, n *html.Node) {
	raw, ok := small(n)
	text := line(raw)
	if !ok || text == "" || w.pre || strings.Contains(text, mark) ||
		first(n, func(d *html.Node) bool { return hidden[d.Data] || unseen(d) || d.DataAtom == atom.A }) != nil {
		w.children(n)
		return
	}
	w.space = w.space || startsWithSpace(raw)
	w.word(mark + text + mark)
	w.space = endsWithSpace(raw)
}

func endsWithSpace(s string) bool { return strings.TrimRightFunc(s, unicode.IsSpace) != s }

func startsWithSpace(s string) bool { return strings.TrimLeftFunc(s, unicode.IsSpace) != s }

func (w *writer) list(n *html.Node) {
	gap := 2
	if len(w.lists) > 0 {
		gap = 1
	}
	number := 0
	if n.DataAtom == atom.Ol {
		number = 1
		if from, err := strconv.Atoi(attr(n, "start")); err == nil && from > 0 && from < 1_000_000 {
			number = from
		}
	}
	w.lists = append(w.lists, number)
	w.block(gap, func() { w.children(n) })
	w.lists = w.lists[:len(w.lists)-1]
}

func (w *writer) item(n *html.Node) {
	mark := "- "
	if last := len(w.lists) - 1; last >= 0 && w.lists[last] > 0 {
		mark = strconv.Itoa(w.lists[last]) + ". "
		w.lists[last]++
	}
	if w.cell {
		w.children(n)
		return
	}
	w.owe(1)
	if len(w.prefix) >= maxIndent {
		w.children(n)
	} else {
		w.prefix = append(w.prefix, strings.Repeat(" ", len(mark)))
		w.mark = mark
		w.children(n)
		w.mark = ""
		w.prefix = w.prefix[:len(w.prefix)-1]
	}
	w.owe(1)
}

func (w *writer) indented(prefix string, n *html.Node) {
	if len(w.prefix) >= maxIndent || w.cell {
		w.children(n)
		return
	}
	w.prefix = append(w.prefix, prefix)
	w.children(n)
	w.prefix = w.prefix[:len(w.prefix)-1]
}

// oneLine writes what is within as one line.
func (w *writer) oneLine(n *html.Node) {
	old := w.cell
	w.cell = true
	w.children(n)
	w.cell = old
}

// link writes a link with where it leads to, when that is a page.
func (w *writer) link(n *html.Node) {
	raw, ok := small(n)
	to := w.target(attr(n, "href"))
	if !ok || to == "" || w.inLink {
		w.children(n)
		return
	}
	inside := &writer{base: w.base, skip: w.skip, cell: true, inLink: true}
	inside.children(n)
	text := strings.TrimSpace(inside.b.String())
	if text == "" {
		return
	}
	w.space = w.space || startsWithSpace(raw)
	w.word("[" + text + "](" + to + ")")
	w.space = endsWithSpace(raw)
}

// target is where a link leads to, as Markdown writes it; empty when that is no page of its own.
func (w *writer) target(href string) string {
	href = strings.TrimSpace(href)
	if href == "" || strings.HasPrefix(href, "#") || len(href) > maxLink {
		return ""
	}
	to, err := w.base.Parse(href)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" || to.User != nil {
		return ""
	}
	out := strings.NewReplacer("(", "%28", ")", "%29").Replace(to.String())
	if len(out) > maxLink {
		return ""
	}
	return out
}

func (w *writer) row(n *html.Node) {
	if w.cell {
		w.children(n)
		return
	}
	w.owe(1)
	cells, heads := 0, 0
	for c := range n.ChildNodes() {
		if c.DataAtom != atom.Td && c.DataAtom != atom.Th {
			continue
		}
		if c.DataAtom == atom.Th {
			heads++
		}
		w.word("|")
		w.space = true
		w.oneLine(c)
		w.space = true
		cells++
	}
	if cells == 0 {
		return
	}
	w.word("|")
	if heads == cells && n.PrevSibling == nil {
		w.owe(1)
		w.word(strings.Repeat("|---", min(cells, 100)) + "|")
	}
	w.owe(1)
}
