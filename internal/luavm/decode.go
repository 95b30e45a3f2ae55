package luavm

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

// maxDepth bounds nesting in both directions.
const maxDepth = 128

// Valid tells whether b is one JSON value and nothing else; the error wraps
// ErrJSON and names the byte.
func Valid(b []byte) error {
	d := decoder{b: b}
	_, err := d.document()
	return err
}

// Decode makes a value from JSON text. Key order, empty arrays, nulls and
// integers of any size are kept; of equal keys the last wins; invalid UTF-8 and
// lone surrogates become U+FFFD. The error wraps ErrJSON and names the byte.
func (s *State) Decode(b []byte) (Value, error) {
	d := decoder{b: b, s: s}
	v, err := d.document()
	return Value{v}, err
}

// decoder reads one document. Without a state it only checks.
type decoder struct {
	b []byte
	i int
	s *State
	// keys makes str give its text without a state.
	keys bool
}

func (d *decoder) document() (lua.LValue, error) {
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	if d.space(); d.i != len(d.b) {
		return nil, d.bad("text after the value")
	}
	return v, nil
}

func (d *decoder) bad(what string) error {
	if d.i >= len(d.b) {
		return fmt.Errorf("%w: %s: unexpected end at byte %d", ErrJSON, what, len(d.b))
	}
	return fmt.Errorf("%w: %s at byte %d", ErrJSON, what, d.i)
}

func (d *decoder) space() {
	for d.i < len(d.b) {
		switch d.b[d.i] {
		case ' ', '\t', '\n', '\r':
			d.i++
		default:
			return
		}
	}
}

func (d *decoder) value(depth int) (lua.LValue, error) {
	d.space()
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: nested deeper than %d", ErrJSON, maxDepth)
	}
	if d.i >= len(d.b) {
		return nil, d.bad("value expected")
	}
	switch c := d.b[d.i]; {
	case c == '{':
		return d.object(depth)
	case c == '[':
		return d.array(depth)
	case c == '"':
		s, err := d.str()
		return lua.LString(s), err
	case c == '-' || isDigit(c):
		return d.number()
	}
	switch {
	case d.word("true"):
		return lua.LTrue, nil
	case d.word("false"):
		return lua.LFalse, nil
	case d.word("null"):
		if d.s == nil {
			return lua.LNil, nil
		}
		return d.s.null, nil
	}
	return nil, d.bad("value expected")
}

// word steps over a word that stands here.
func (d *decoder) word(w string) bool {
	if len(d.b)-d.i < len(w) || string(d.b[d.i:d.i+len(w)]) != w {
		return false
	}
	d.i += len(w)
	return true
}

func (d *decoder) object(depth int) (lua.LValue, error) {
	d.i++
	var t *lua.LTable
	if d.s != nil {
		t = d.s.vm.CreateTable(0, 8)
	}
	for n := 0; ; n++ {
		d.space()
		if d.i < len(d.b) && d.b[d.i] == '}' && n == 0 {
			d.i++
			if t != nil {
				t.Metatable = d.s.objectMT
			}
			return d.table(t), nil
		}
		if d.i >= len(d.b) || d.b[d.i] != '"' {
			return nil, d.bad("key expected")
		}
		key, err := d.str()
		if err != nil {
			return nil, err
		}
		if d.space(); d.i >= len(d.b) || d.b[d.i] != ':' {
			return nil, d.bad("':' expected")
		}
		d.i++
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if t != nil {
			t.RawSetString(key, v)
		}
		if done, err := d.next('}'); done || err != nil {
			return d.table(t), err
		}
	}
}

func (d *decoder) array(depth int) (lua.LValue, error) {
	d.i++
	var t *lua.LTable
	if d.s != nil {
		t = d.s.vm.CreateTable(4, 0)
		t.Metatable = d.s.arrayMT
	}
	if d.space(); d.i < len(d.b) && d.b[d.i] == ']' {
		d.i++
		return d.table(t), nil
	}
	for {
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if t != nil {
			t.Append(v)
		}
		if done, err := d.next(']'); done || err != nil {
			return d.table(t), err
		}
	}
}

func (d *decoder) table(t *lua.LTable) lua.LValue {
	if t == nil {
		return lua.LNil
	}
	return t
}

// next steps over a comma or the closing byte.
func (d *decoder) next(shut byte) (bool, error) {
	d.space()
	if d.i >= len(d.b) || d.b[d.i] != ',' && d.b[d.i] != shut {
		return false, d.bad(fmt.Sprintf("',' or '%c' expected", shut))
	}
	d.i++
	return d.b[d.i-1] == shut, nil
}

func (d *decoder) number() (lua.LValue, error) {
	start, whole := d.i, true
	if d.b[d.i] == '-' {
		d.i++
	}
	if d.i < len(d.b) && d.b[d.i] == '0' {
		d.i++
	} else if d.digits() == 0 {
		return nil, d.bad("digit expected")
	}
	if d.i < len(d.b) && d.b[d.i] == '.' {
		d.i++
		if whole = false; d.digits() == 0 {
			return nil, d.bad("digit expected")
		}
	}
	if d.i < len(d.b) && d.b[d.i]|0x20 == 'e' {
		d.i++
		if d.i < len(d.b) && (d.b[d.i] == '+' || d.b[d.i] == '-') {
			d.i++
		}
		if whole = false; d.digits() == 0 {
			return nil, d.bad("digit expected")
		}
	}
	text := d.b[start:d.i]
	if d.s == nil {
		return lua.LNil, nil
	}
	f, rangeErr := strconv.ParseFloat(string(text), 64)
	if rangeErr != nil || whole && math.Abs(f) >= 1<<53 {
		//nolint:nilerr // a number out of range is kept as it is written
		return d.s.newRaw(bytes.Clone(text)), nil
	}
	return lua.LNumber(f), nil
}

func (d *decoder) digits() int {
	start := d.i
	for d.i < len(d.b) && isDigit(d.b[d.i]) {
		d.i++
	}
	return d.i - start
}

func (d *decoder) str() (string, error) {
	d.i++
	start := d.i
	for d.i < len(d.b) {
		switch c := d.b[d.i]; {
		case c == '"':
			s := d.b[start:d.i]
			d.i++
			if d.s == nil && !d.keys {
				return "", nil
			}
			if !utf8.Valid(s) {
				s = bytes.ToValidUTF8(s, []byte("\uFFFD"))
			}
			return string(s), nil
		case c == '\\':
			return d.escaped(start)
		case c < 0x20:
			return "", d.bad("control character in a string")
		}
		d.i++
	}
	return "", d.bad("string not closed")
}

func (d *decoder) escaped(start int) (string, error) {
	out := append([]byte(nil), d.b[start:d.i]...)
	for d.i < len(d.b) {
		c := d.b[d.i]
		switch {
		case c == '"':
			d.i++
			if !utf8.Valid(out) {
				out = bytes.ToValidUTF8(out, []byte("\uFFFD"))
			}
			return string(out), nil
		case c < 0x20:
			return "", d.bad("control character in a string")
		case c != '\\':
			out = append(out, c)
			d.i++
			continue
		}
		d.i++
		if d.i >= len(d.b) {
			break
		}
		switch e := d.b[d.i]; e {
		case '"', '\\', '/':
			out = append(out, e)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, ok := d.hex(d.i + 1)
			if !ok {
				return "", d.bad("four hexadecimal digits expected")
			}
			d.i += 4
			if utf16.IsSurrogate(r) {
				if low, ok := d.low(); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
					r = utf16.DecodeRune(r, low)
					d.i += 6
				} else {
					r = utf8.RuneError
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			return "", d.bad("unknown escape")
		}
		d.i++
	}
	return "", d.bad("string not closed")
}

func (d *decoder) low() (rune, bool) {
	if d.i+2 < len(d.b) && d.b[d.i+1] == '\\' && d.b[d.i+2] == 'u' {
		return d.hex(d.i + 3)
	}
	return 0, false
}

func (d *decoder) hex(at int) (rune, bool) {
	if at+4 > len(d.b) {
		return 0, false
	}
	var r rune
	for _, c := range d.b[at : at+4] {
		switch {
		case isDigit(c):
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
