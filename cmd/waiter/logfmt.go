package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
)

// records writes lines of a log as JSON objects, one a line. Lines that are objects already stay as they are.
type records struct {
	w    io.Writer
	part []byte // of a line whose end has not come yet
}

// Write takes any pieces of a log.
func (r *records) Write(b []byte) (int, error) {
	n := len(b)
	for {
		line, rest, ended := bytes.Cut(b, []byte("\n"))
		r.part = append(r.part, line...)
		if !ended {
			return n, nil
		}
		b = rest
		out := record(string(r.part))
		r.part = r.part[:0]
		if _, err := io.WriteString(r.w, out+"\n"); err != nil {
			return 0, err
		}
	}
}

// record is a line of a log as a JSON object. One that is not of the form key=value, such as that of a crash, is its msg.
func record(line string) string {
	if strings.HasPrefix(line, "{") && json.Valid([]byte(line)) {
		return line
	}
	var b strings.Builder
	add := func(key, value string) {
		k, _ := json.Marshal(key) // strings always encode
		v, _ := json.Marshal(value)
		if b.Len() == 0 {
			b.WriteByte('{')
		} else {
			b.WriteByte(',')
		}
		b.Write(k)
		b.WriteByte(':')
		b.Write(v)
	}
	for rest := line; rest != ""; {
		key, value, left, ok := field(rest)
		if !ok {
			b.Reset()
			break
		}
		add(key, value)
		rest = left
	}
	if b.Len() == 0 {
		add("msg", line)
	}
	return b.String() + "}"
}

// field takes the first key=value off a line. Either may be quoted as in Go.
func field(s string) (key, value, rest string, ok bool) {
	if key, s, ok = token(s, "="); !ok || key == "" || !strings.HasPrefix(s, "=") {
		return "", "", "", false
	}
	if value, s, ok = token(s[1:], " "); !ok || (s != "" && s[0] != ' ') {
		return "", "", "", false
	}
	return key, value, strings.TrimPrefix(s, " "), true
}

// token takes a word off s that ends before the sign, or a quoted one.
func token(s, sign string) (word, rest string, ok bool) {
	if !strings.HasPrefix(s, "\"") {
		i := strings.Index(s, sign)
		if i < 0 {
			i = len(s)
		}
		return s[:i], s[i:], !strings.ContainsAny(s[:i], "\" ")
	}
	quoted, err := strconv.QuotedPrefix(s)
	if err != nil {
		return "", "", false
	}
	word, err = strconv.Unquote(quoted)
	return word, s[len(quoted):], err == nil
}
