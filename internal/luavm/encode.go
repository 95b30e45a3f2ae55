package luavm

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

// Encode writes a value as compact JSON: keys in the order in which they were
// set, whole numbers without exponent, raw values as they stand, invalid UTF-8
// as U+FFFD. An empty table without a mark is an object. The error wraps
// ErrJSON or ErrLimit and names the path.
func (s *State) Encode(v Value) ([]byte, error) { return s.AppendJSON(nil, v) }

// AppendJSON is Encode onto dst.
func (s *State) AppendJSON(dst []byte, v Value) ([]byte, error) {
	e := encoder{b: dst, s: s}
	if err := e.value(v.lua(), 0); err != nil {
		return dst, err
	}
	return e.b, nil
}

type encoder struct {
	b    []byte
	s    *State
	path []string
}

func (e *encoder) bad(format string, args ...any) error {
	at := "value"
	for _, p := range e.path {
		at += p
	}
	return fmt.Errorf("%w: %s: %s", ErrJSON, at, fmt.Sprintf(format, args...))
}

func (e *encoder) value(v lua.LValue, depth int) error {
	if depth > maxDepth {
		return e.bad("nested deeper than %d (a cycle?)", maxDepth)
	}
	if len(e.b) > e.s.limits.String {
		return fmt.Errorf("%w: JSON text above %d bytes", ErrLimit, e.s.limits.String)
	}
	switch x := v.(type) {
	case *lua.LNilType:
		e.b = append(e.b, "null"...)
	case lua.LBool:
		e.b = strconv.AppendBool(e.b, bool(x))
	case lua.LNumber:
		return e.number(float64(x))
	case lua.LString:
		e.b = AppendString(e.b, string(x))
	case *lua.LTable:
		return e.table(x, depth)
	case *lua.LUserData:
		switch u := x.Value.(type) {
		case raw:
			e.b = append(e.b, u...)
		case null:
			e.b = append(e.b, "null"...)
		default:
			return e.bad("a userdata has no JSON form")
		}
	default:
		return e.bad("a %s has no JSON form", v.Type())
	}
	return nil
}

func (e *encoder) number(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return e.bad("%v has no JSON form", f)
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		e.b = strconv.AppendInt(e.b, int64(f), 10)
		return nil
	}
	verb := byte('f')
	if a := math.Abs(f); a < 1e-6 || a >= 1e21 {
		verb = 'e'
	}
	e.b = strconv.AppendFloat(e.b, f, verb, -1, 64)
	return nil
}

func (e *encoder) table(t *lua.LTable, depth int) error {
	n := t.Len()
	switch {
	case t.Metatable == e.s.arrayMT, n > 0 && t.Metatable != e.s.objectMT:
		return e.array(t, n, depth)
	}
	return e.object(t, depth)
}

func (e *encoder) array(t *lua.LTable, n, depth int) error {
	e.b = append(e.b, '[')
	for i := 1; i <= n; i++ {
		if i > 1 {
			e.b = append(e.b, ',')
		}
		v := t.RawGetInt(i)
		e.path = append(e.path, fmtIndex(i))
		if v == lua.LNil {
			return e.bad("array with a hole")
		}
		if err := e.value(v, depth+1); err != nil {
			return err
		}
		e.path = e.path[:len(e.path)-1]
	}
	var last lua.LValue = lua.LNil
	if n > 0 {
		last = lua.LNumber(n)
	}
	if k, _ := t.Next(last); k != lua.LNil {
		return e.bad("array with the key %q", k.String())
	}
	e.b = append(e.b, ']')
	return nil
}

func fmtIndex(i int) string { return "[" + strconv.Itoa(i) + "]" }

func (e *encoder) object(t *lua.LTable, depth int) error {
	e.b = append(e.b, '{')
	first := true
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		name, ok := k.(lua.LString)
		if !ok {
			return e.bad("object with the key %s, which is no string", k.String())
		}
		if !first {
			e.b = append(e.b, ',')
		}
		first = false
		e.b = AppendString(e.b, string(name))
		e.b = append(e.b, ':')
		e.path = append(e.path, "."+string(name))
		if err := e.value(v, depth+1); err != nil {
			return err
		}
		e.path = e.path[:len(e.path)-1]
	}
	e.b = append(e.b, '}')
	return nil
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. Only what JSON demands is escaped;
// invalid UTF-8 becomes U+FFFD.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[start:i]...), "\uFFFD"...)
				start = i + 1
			}
			i += n
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}
