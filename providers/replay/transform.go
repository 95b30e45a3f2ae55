package replay

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"regexp"
	"strings"

	"homeagent/providers/framing"
)

// Transform changes how an answer is sent without changing what it says.
type Transform struct {
	// Name begins with T and a number, but for the answer as it was recorded.
	Name string
	// Body changes the bytes; nil leaves them. A nil result means that the
	// transform does not apply to this body.
	Body     func([]byte) []byte
	Delivery Delivery
}

// padding is how much T13 adds.
const padding = 5 << 20

// Transforms gives those that a framing has. None may change a result.
func Transforms(kind framing.Kind) []Transform {
	out := []Transform{
		{Name: "as recorded"},
		{Name: "T1 one byte a read", Delivery: Delivery{Read: 1}},
		{Name: "T2 random splits", Delivery: Delivery{Read: -1}},
		{Name: "T11 gzip", Body: zip, Delivery: Delivery{Encoding: "gzip"}},
	}
	switch kind {
	case framing.SSE:
		out = append(out, sseTransforms()...)
	case framing.NDJSON:
		out = append(out,
			Transform{Name: "T3 CRLF", Body: lineEnds("\r\n")},
			Transform{Name: "T8 byte order mark", Body: marked},
			Transform{Name: "T9 no last line end", Body: func(b []byte) []byte { return bytes.TrimRight(b, "\r\n") }},
			Transform{Name: "T13 5 MB of padding", Body: padded(objectStart)},
		)
	case framing.JSON:
		out = append(out, Transform{Name: "T8 byte order mark", Body: marked}, Transform{Name: "T13 5 MB of padding", Body: padded(objectStart)})
	case framing.EventStream:
		out = append(out, Transform{Name: "T13 5 MB of padding", Body: padEventStream})
	}
	return out
}

func sseTransforms() []Transform {
	return []Transform{
		{Name: "T3 CRLF", Body: lineEnds("\r\n")},
		{Name: "T3 CRLF, one byte a read", Body: lineEnds("\r\n"), Delivery: Delivery{Read: 1}},
		{Name: "T4 CR", Body: lineEnds("\r")},
		{Name: "T5 comments", Body: events(func(i int, e string) string { return fmt.Sprintf(": ping\n\n:\n%s\n: ping %d", e, i) })},
		{Name: "T6 no space", Body: func(b []byte) []byte { return atLineStart.ReplaceAll(b, []byte("${1}data:")) }},
		{Name: "T7 other fields", Body: events(func(i int, e string) string {
			if strings.Contains(e, "event:") {
				return fmt.Sprintf("id: %d\nretry: 1000\n%s", i, e)
			}
			return fmt.Sprintf("id: %d\nretry: 1000\nevent: message\n%s", i, e)
		})},
		{Name: "T8 byte order mark", Body: marked},
		{Name: "T9 no last blank line", Body: func(b []byte) []byte { return bytes.TrimRight(b, "\r\n") }},
		{Name: "T10 no DONE", Body: func(b []byte) []byte {
			if !doneLine.Match(b) {
				return nil
			}
			return doneLine.ReplaceAll(b, []byte("${1}: done"))
		}},
		{Name: "T12 two data lines", Body: events(splitData)},
		{Name: "T13 5 MB of padding", Body: padded(dataStart)},
	}
}

var (
	atLineStart = regexp.MustCompile(`(^|\n|\r)data: `)
	doneLine    = regexp.MustCompile(`(^|\n|\r)data: ?\[DONE\]`)
	dataStart   = regexp.MustCompile(`(?:^|\n|\r)data: ?\{`)
	objectStart = regexp.MustCompile(`\{`)
)

func marked(b []byte) []byte { return append([]byte("\xef\xbb\xbf"), b...) }

func lineEnds(end string) func([]byte) []byte {
	return func(b []byte) []byte {
		return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte(end))
	}
}

// events changes each event of a stream of server-sent events.
func events(change func(i int, e string) string) func([]byte) []byte {
	return func(b []byte) []byte {
		var out []string
		for i, e := range strings.Split(strings.TrimRight(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n"), "\n\n") {
			out = append(out, change(i, e))
		}
		return []byte(strings.Join(out, "\n\n") + "\n\n")
	}
}

// splitData breaks the data of an event after its first comma outside of a text.
func splitData(_ int, e string) string {
	lines := strings.Split(e, "\n")
	for i, l := range lines {
		data, ok := strings.CutPrefix(l, "data:")
		if !ok || !strings.HasPrefix(strings.TrimSpace(data), "{") {
			continue
		}
		text, escaped := false, false
		for at, c := range []byte(data) {
			switch {
			case escaped:
				escaped = false
			case text && c == '\\':
				escaped = true
			case c == '"':
				text = !text
			case c == ',' && !text:
				lines[i] = "data:" + data[:at+1] + "\ndata: " + data[at+1:]
				return strings.Join(lines, "\n")
			}
		}
	}
	return e
}

// padded puts a long field into the first object after what start finds.
func padded(start *regexp.Regexp) func([]byte) []byte {
	return func(b []byte) []byte {
		at := start.FindIndex(b)
		if at == nil || nextByte(b[at[1]:]) == '}' {
			return nil
		}
		field := `"padding":"` + strings.Repeat("p", padding) + `",`
		return append(append(append([]byte{}, b[:at[1]]...), field...), b[at[1]:]...)
	}
}

func nextByte(b []byte) byte {
	if b = bytes.TrimSpace(b); len(b) > 0 {
		return b[0]
	}
	return '}'
}

func zip(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}
