package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"

	"homeagent/internal/egress"
)

// page is what was read of an answer.
type page struct {
	kind  string // media type without parameters
	title string
	text  string
}

// read finds the text of an answer; an error says, for the model, why there is none.
func read(res *egress.Response) (page, error) {
	header := res.Header.Get("Content-Type")
	if header == "" {
		header = http.DetectContentType(res.Body)
	}
	kind, _, err := mime.ParseMediaType(header)
	if err != nil {
		kind = strings.ToLower(strings.TrimSpace(strings.SplitN(header, ";", 2)[0]))
	}
	p := page{kind: kind}
	switch {
	case kind == "text/html" || kind == "application/xhtml+xml":
		text, err := decoded(res.Body, header, true)
		if err != nil {
			return p, err
		}
		p.title, p.text = extract(text, res.URL)
		return p, nil
	case strings.HasPrefix(kind, "text/"), kind == "application/json", kind == "application/xml", kind == "application/javascript",
		kind == "application/yaml", strings.HasSuffix(kind, "+json"), strings.HasSuffix(kind, "+xml"):
		text, err := decoded(res.Body, header, false)
		if err != nil {
			return p, err
		}
		p.text = clean(string(text))
		return p, nil
	case kind == "application/octet-stream" && utf8.Valid(res.Body) && bytes.IndexByte(res.Body, 0) < 0:
		p.text = clean(string(res.Body))
		return p, nil
	}
	return p, fmt.Errorf("the page is no text but %q, %d bytes", clip(kind, 100), len(res.Body))
}

var errCharset = errors.New("the characters of the page cannot be read")

// decoded brings a text into UTF-8. A page may name its encoding in itself; other texts are in UTF-8 unless the header
// says otherwise.
func decoded(body []byte, header string, sniff bool) ([]byte, error) {
	_, params, _ := mime.ParseMediaType(header) // a header that cannot be read names no encoding
	if !sniff && params["charset"] == "" && utf8.Valid(body) {
		return body, nil
	}
	r, err := charset.NewReader(bytes.NewReader(body), header)
	if errors.Is(err, io.EOF) {
		return nil, nil // an empty page
	}
	if err != nil {
		return nil, errCharset
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, errCharset
	}
	return text, nil
}

// clean takes out what is no text for a model: broken and control characters.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < ' ' || r == 0x7f || r == 0xfeff || r >= 0x80 && r < 0xa0:
			return -1
		}
		return r
	}, strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "\uFFFD"))
}

// broken is what the first byte of a text reads as when an offset lies within a character.
func broken(r rune) bool { return r == utf8.RuneError }

// clip cuts a text at a character.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// parse reads HTML; what is nested too deep for a tree becomes a flat one of its texts.
func parse(text []byte) *html.Node {
	doc, err := html.ParseWithOptions(bytes.NewReader(text), html.ParseOptionEnableScripting(false))
	if err == nil {
		return doc
	}
	doc = &html.Node{Type: html.DocumentNode}
	z := html.NewTokenizer(bytes.NewReader(text))
	skip := ""
	for {
		switch z.Next() {
		case html.ErrorToken:
			return doc
		case html.StartTagToken:
			if name, _ := z.TagName(); skip == "" && hidden[string(name)] {
				skip = string(name)
			}
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == skip {
				skip = ""
			}
		case html.TextToken:
			if skip == "" {
				doc.AppendChild(&html.Node{Type: html.TextNode, Data: string(z.Text()) + " "})
			}
		case html.SelfClosingTagToken, html.CommentToken, html.DoctypeToken: // no text
		}
	}
}
