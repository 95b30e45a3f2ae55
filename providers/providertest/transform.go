package providertest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Transform changes how a stream is sent without changing what it says.
type Transform struct {
	Name string
	// Body changes the bytes; nil leaves them.
	Body func([]byte) []byte
	// Read bounds how much one read gives; 0 means no bound, -1 random.
	Read int
	// Encoding is the Content-Encoding header.
	Encoding string
}

// Transforms must not change a result.
func Transforms() []Transform {
	lineEnds := func(end string) func([]byte) []byte {
		return func(b []byte) []byte {
			return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte(end))
		}
	}
	events := func(change func(i int, e string) string) func([]byte) []byte {
		return func(b []byte) []byte {
			var out []string
			for i, e := range strings.Split(strings.TrimRight(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n"), "\n\n") {
				out = append(out, change(i, e))
			}
			return []byte(strings.Join(out, "\n\n") + "\n\n")
		}
	}
	onlyData := func(e string) bool { return strings.HasPrefix(e, "data:") && !strings.Contains(e, "\n") }
	return []Transform{
		{Name: "as recorded"},
		{Name: "T1 one byte a read", Read: 1},
		{Name: "T2 random splits", Read: -1},
		{Name: "T3 CRLF", Body: lineEnds("\r\n")},
		{Name: "T3 CRLF, one byte a read", Body: lineEnds("\r\n"), Read: 1},
		{Name: "T4 CR", Body: lineEnds("\r")},
		{Name: "T5 comments", Body: events(func(i int, e string) string { return fmt.Sprintf(": ping\n\n:\n%s\n: ping %d", e, i) })},
		{Name: "T6 no space", Body: func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte("data: "), []byte("data:"))
		}},
		{Name: "T7 other fields", Body: events(func(i int, e string) string {
			if !onlyData(e) {
				return e
			}
			return fmt.Sprintf("id: %d\nretry: 1000\nevent: message\n%s", i, e)
		})},
		{Name: "T8 byte order mark", Body: func(b []byte) []byte { return append([]byte("\xef\xbb\xbf"), b...) }},
		{Name: "T9 no last blank line", Body: func(b []byte) []byte { return bytes.TrimRight(b, "\r\n") }},
		{Name: "T10 no DONE", Body: func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte("data: [DONE]"), []byte(": done"))
		}},
		{Name: "T11 gzip", Body: zip, Encoding: "gzip"},
		{Name: "T12 two data lines", Body: events(func(_ int, e string) string {
			if i := strings.Index(e, `,"`); i > 0 && onlyData(e) && strings.HasPrefix(e, "data: {") {
				return e[:i+1] + "\ndata: " + e[i+1:]
			}
			return e
		})},
		{Name: "T13 5 MB of padding", Body: func(b []byte) []byte {
			return bytes.Replace(b, []byte("data: {"), []byte(`data: {"padding":"`+strings.Repeat("p", 5<<20)+`",`), 1)
		}},
	}
}

func zip(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

// finishAt gives the place of the first finish mark, or -1.
func finishAt(b []byte) int {
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(`"finish_reason":`))
		if i < 0 {
			return -1
		}
		at += i + len(`"finish_reason":`)
		if !bytes.HasPrefix(bytes.TrimLeft(b[at:], " "), []byte("null")) {
			return at
		}
	}
}

// Cuts give truncated forms of a stream; each must be a truncation, with the
// text so far and no call that may run.
func Cuts(b []byte, seed uint64) map[string][]byte {
	out := make(map[string][]byte)
	end := finishAt(b)
	if end < 0 {
		return out
	}
	event := bytes.LastIndex(b[:end], []byte("data:"))
	if event > 0 {
		out["C1 before the finish"] = b[:event]
		out["C2 inside the last event"] = b[:event+(end-event)/2]
	}
	if i := bytes.LastIndex(b[:max(event, 0)], []byte(`"arguments":`)); i > 0 {
		out["C3 inside the arguments"] = b[:i+len(`"arguments":"`)+1]
	}
	rnd := rand.New(rand.NewPCG(seed, 7))
	if event > 10 {
		out["C2 anywhere"] = b[:10+rnd.IntN(event-10)]
	}
	return out
}
