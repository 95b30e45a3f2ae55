package luavm

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// stringLib replaces the library functions whose cost or result a script can
// blow up; the rest stays the interpreter's.
func (s *State) stringLib(mod *lua.LTable) {
	for name, fn := range map[string]lua.LGFunction{
		"rep": s.strRep, "format": s.strFormat, "find": s.strFind, "match": s.strMatch,
		"gmatch": s.strGmatch, "gsub": s.strGsub, "lower": s.strLower, "upper": s.strUpper,
	} {
		mod.RawSetString(name, s.vm.NewFunction(fn))
	}
	for _, gone := range []string{"dump", "gfind"} {
		mod.RawSetString(gone, lua.LNil)
	}
}

// allow raises when a result of n bytes is above the limit.
func (s *State) allow(L *lua.LState, what string, n int) {
	if n > s.limits.String || n < 0 {
		s.raise(L, fmt.Errorf("%w: %s of %d bytes, at most %d are allowed", ErrLimit, what, n, s.limits.String))
	}
}

// pay charges the budget for building n bytes and raises when that is too much.
func (s *State) pay(L *lua.LState, what string, n int) {
	s.allow(L, what, n)
	if err := s.budget.charge(n / 64); err != nil {
		s.raise(L, err)
	}
}

// raise turns a Go error into an error of the script at its current line and
// remembers the cause, so that Call can classify it.
func (s *State) raise(L *lua.LState, err error) {
	text := err.Error()
	if s.budget.err != nil && errors.Is(err, s.budget.err) {
		text = s.budget.why(s.limits)
	}
	s.cause, s.causeText = err, text
	L.RaiseError("%s", text)
}

func (s *State) strRep(L *lua.LState) int {
	str, n := L.CheckString(1), L.CheckInt(2)
	if n <= 0 || str == "" {
		L.Push(lua.LString(""))
		return 1
	}
	if n > s.limits.String/len(str) {
		n = s.limits.String/len(str) + 1
	}
	s.pay(L, "string.rep", n*len(str))
	L.Push(lua.LString(strings.Repeat(str, n)))
	return 1
}

// ASCII only, as in Lua's C locale: adapters compare wire words, not prose.
func (s *State) strLower(L *lua.LState) int {
	str := L.CheckString(1)
	s.pay(L, "string.lower", len(str))
	L.Push(lua.LString(mapASCII(str, 'A', 'Z', 0x20)))
	return 1
}

func (s *State) strUpper(L *lua.LState) int {
	str := L.CheckString(1)
	s.pay(L, "string.upper", len(str))
	L.Push(lua.LString(mapASCII(str, 'a', 'z', 0x20)))
	return 1
}

func mapASCII(str string, lo, hi, flip byte) string {
	for i := 0; i < len(str); i++ {
		if str[i] >= lo && str[i] <= hi {
			b := []byte(str)
			for ; i < len(b); i++ {
				if b[i] >= lo && b[i] <= hi {
					b[i] ^= flip
				}
			}
			return string(b)
		}
	}
	return str
}

func (s *State) concat(L *lua.LState) int {
	n, top := 0, L.GetTop()
	for i := 1; i <= top; i++ {
		switch v := L.Get(i).(type) {
		case lua.LString:
			n += len(v)
		case lua.LNumber:
			n += 24
		default:
			L.RaiseError("attempt to concatenate a %s value", s.typeName(v))
		}
	}
	s.pay(L, "concatenation", n)
	var b strings.Builder
	b.Grow(n)
	for i := 1; i <= top; i++ {
		b.WriteString(lua.LVAsString(L.Get(i)))
	}
	L.Push(lua.LString(b.String()))
	return 1
}

func (s *State) tableConcat(L *lua.LState) int {
	tbl, sep := L.CheckTable(1), L.OptString(2, "")
	from, to := L.OptInt(3, 1), L.OptInt(4, tbl.Len())
	var b strings.Builder
	for i := from; i <= to; i++ {
		v := tbl.RawGetInt(i)
		if !lua.LVCanConvToString(v) {
			L.RaiseError("invalid value (%s) at index %d in table for 'concat'", s.typeName(v), i)
		}
		str := lua.LVAsString(v)
		if b.Len()+len(str) > s.limits.String {
			s.pay(L, "table.concat", b.Len()+len(str))
		}
		if err := s.budget.charge(1 + len(str)/64); err != nil {
			s.raise(L, err)
		}
		b.WriteString(str)
		if i < to {
			b.WriteString(sep)
		}
	}
	s.pay(L, "table.concat", b.Len())
	L.Push(lua.LString(b.String()))
	return 1
}

func (s *State) matcher(src, pat string) *matcher {
	return &matcher{src: src, pat: pat, budget: &s.budget}
}

// settle raises what stopped a matcher.
func (s *State) settle(L *lua.LState, m *matcher) {
	if m.err == nil {
		return
	}
	if errors.Is(m.err, ErrLimit) {
		s.raise(L, fmt.Errorf("%w: pattern %.60q is too complex", ErrLimit, m.pat))
	}
	if s.budget.err != nil && errors.Is(m.err, s.budget.err) {
		s.raise(L, m.err)
	}
	L.RaiseError("%s: %.60q", m.err.Error(), m.pat)
}

// capture gives the i-th capture (from 0) of a match, the whole match when the
// pattern has no captures and i is 0.
func (m *matcher) capture(i, start, end int) (lua.LValue, bool) {
	if i >= m.level {
		if i == 0 {
			return lua.LString(m.src[start:end]), true
		}
		return lua.LNil, false
	}
	switch c := m.caps[i]; c.length {
	case capPosition:
		return lua.LNumber(c.start + 1), true
	case capOpen:
		return lua.LNil, false
	default:
		return lua.LString(m.src[c.start : c.start+c.length]), true
	}
}

func (s *State) pushCaptures(L *lua.LState, m *matcher, start, end int, whole bool) int {
	n := m.level
	if n == 0 && whole {
		n = 1
	}
	for i := 0; i < n; i++ {
		v, ok := m.capture(i, start, end)
		if !ok {
			L.RaiseError("unfinished capture")
		}
		L.Push(v)
	}
	return n
}

func startAt(L *lua.LState, n, length int) int {
	at := L.OptInt(n, 1)
	switch {
	case at > 0:
		at--
	case at < 0:
		at = max(length+at, 0)
	}
	return at
}

func (s *State) strFind(L *lua.LState) int {
	src, pat := L.CheckString(1), L.CheckString(2)
	from := startAt(L, 3, len(src))
	if from > len(src) {
		L.Push(lua.LNil)
		return 1
	}
	if lua.LVAsBool(L.Get(4)) || !strings.ContainsAny(pat, "^$*+?.([%-") {
		s.pay(L, "string.find", min(len(src), s.limits.String))
		i := strings.Index(src[from:], pat)
		if i < 0 {
			L.Push(lua.LNil)
			return 1
		}
		L.Push(lua.LNumber(from + i + 1))
		L.Push(lua.LNumber(from + i + len(pat)))
		return 2
	}
	m := s.matcher(src, pat)
	start, end, ok := m.find(from)
	s.settle(L, m)
	if !ok {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(lua.LNumber(start + 1))
	L.Push(lua.LNumber(end))
	return 2 + s.pushCaptures(L, m, start, end, false)
}

func (s *State) strMatch(L *lua.LState) int {
	src, pat := L.CheckString(1), L.CheckString(2)
	from := startAt(L, 3, len(src))
	if from <= len(src) {
		m := s.matcher(src, pat)
		start, end, ok := m.find(from)
		s.settle(L, m)
		if ok {
			return s.pushCaptures(L, m, start, end, true)
		}
	}
	L.Push(lua.LNil)
	return 1
}

func (s *State) strGmatch(L *lua.LState) int {
	src, pat := L.CheckString(1), L.CheckString(2)
	m, at := s.matcher(src, pat), 0
	L.Push(L.NewFunction(func(L *lua.LState) int {
		if at > len(src) {
			return 0
		}
		start, end, ok := m.find(at)
		s.settle(L, m)
		if !ok {
			at = len(src) + 1
			return 0
		}
		at = end
		if end == start {
			at++
		}
		return s.pushCaptures(L, m, start, end, true)
	}))
	return 1
}

func (s *State) strGsub(L *lua.LState) int {
	src, pat := L.CheckString(1), L.CheckString(2)
	L.CheckTypes(3, lua.LTString, lua.LTNumber, lua.LTTable, lua.LTFunction)
	repl, limit := L.Get(3), L.OptInt(4, -1)
	anchored := pat != "" && pat[0] == '^'
	p := 0
	if anchored {
		p = 1
	}
	m := s.matcher(src, pat)
	var b strings.Builder
	at, count := 0, 0
	for limit < 0 || count < limit {
		m.level = 0
		end := m.match(at, p)
		s.settle(L, m)
		if end != -1 {
			count++
			str := s.replacement(L, m, repl, at, end)
			s.allow(L, "string.gsub", b.Len()+len(str))
			s.pay(L, "string.gsub", len(str))
			b.WriteString(str)
		}
		switch {
		case end != -1 && end > at:
			at = end
		case at < len(src):
			b.WriteByte(src[at])
			at++
		default:
			at = len(src) + 1
		}
		if at > len(src) || anchored {
			break
		}
	}
	if at <= len(src) {
		s.allow(L, "string.gsub", b.Len()+len(src)-at)
		b.WriteString(src[at:])
	}
	L.Push(lua.LString(b.String()))
	L.Push(lua.LNumber(count))
	return 2
}

func (s *State) replacement(L *lua.LState, m *matcher, repl lua.LValue, start, end int) string {
	var v lua.LValue
	switch r := repl.(type) {
	case *lua.LFunction:
		// The callback may match again: its matcher is another one, but the
		// captures of this match must be pushed before it runs.
		L.Push(r)
		n := s.pushCaptures(L, m, start, end, true)
		L.Call(n, 1)
		v = L.Get(-1)
		L.Pop(1)
	case *lua.LTable:
		key, ok := m.capture(0, start, end)
		if !ok {
			L.RaiseError("unfinished capture")
		}
		v = L.GetTable(r, key)
	default:
		return s.expand(L, m, lua.LVAsString(repl), start, end)
	}
	if lua.LVIsFalse(v) {
		return m.src[start:end]
	}
	if !lua.LVCanConvToString(v) {
		L.RaiseError("invalid replacement value (a %s)", s.typeName(v))
	}
	return lua.LVAsString(v)
}

func (s *State) expand(L *lua.LState, m *matcher, repl string, start, end int) string {
	if !strings.Contains(repl, "%") {
		return repl
	}
	var b strings.Builder
	for i := 0; i < len(repl); i++ {
		if repl[i] != '%' || i+1 == len(repl) {
			b.WriteByte(repl[i])
			continue
		}
		i++
		switch c := repl[i]; {
		case c == '0':
			b.WriteString(m.src[start:end])
		case isDigit(c):
			v, ok := m.capture(int(c-'1'), start, end)
			if !ok {
				L.RaiseError("invalid capture index %%%c", c)
			}
			b.WriteString(lua.LVAsString(v))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func (s *State) strFormat(L *lua.LState) int {
	format := L.CheckString(1)
	var b strings.Builder
	arg := 1
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		if i++; i >= len(format) {
			L.RaiseError("invalid format: it ends in %%")
		}
		if format[i] == '%' {
			b.WriteByte('%')
			continue
		}
		spec := formatSpec(L, format[i:])
		i += len(spec)
		if i >= len(format) {
			L.RaiseError("invalid format '%%%s'", spec)
		}
		arg++
		b.WriteString(s.formatOne(L, spec, format[i], arg))
		s.allow(L, "string.format", b.Len())
	}
	L.Push(lua.LString(b.String()))
	return 1
}

// formatSpec gives flags, width and precision at the start of f; both are at
// most two digits, as in Lua.
func formatSpec(L *lua.LState, f string) string {
	i := 0
	for i < len(f) && strings.IndexByte("-+ #0", f[i]) >= 0 {
		i++
	}
	digits := func() {
		start := i
		for i < len(f) && isDigit(f[i]) {
			i++
		}
		if i-start > 2 {
			L.RaiseError("invalid format (width or precision too long)")
		}
	}
	digits()
	if i < len(f) && f[i] == '.' {
		i++
		digits()
	}
	if i > 12 {
		L.RaiseError("invalid format (repeated flags)")
	}
	return f[:i]
}

func (s *State) formatOne(L *lua.LState, spec string, verb byte, arg int) string {
	switch verb {
	case 'd', 'i':
		return fmt.Sprintf("%"+spec+"d", int64(L.CheckNumber(arg)))
	case 'u':
		return fmt.Sprintf("%"+spec+"d", uint64(L.CheckNumber(arg)))
	case 'c':
		return string([]byte{byte(L.CheckInt(arg))})
	case 'x', 'X', 'o':
		return fmt.Sprintf("%"+spec+string(verb), int64(L.CheckNumber(arg)))
	case 'e', 'E', 'f', 'g', 'G':
		return fmt.Sprintf("%"+spec+string(verb), float64(L.CheckNumber(arg)))
	case 'q':
		return quoteLua(L.CheckString(arg))
	case 's':
		str := s.toString(L, L.CheckAny(arg))
		s.pay(L, "string.format", len(str))
		return fmt.Sprintf("%"+spec+"s", str)
	}
	L.RaiseError("invalid option '%%%c' to 'format'", verb)
	return ""
}

func quoteLua(str string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(str); i++ {
		switch c := str[i]; c {
		case '"', '\\', '\n':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\r':
			b.WriteString("\\r")
		case 0:
			b.WriteString("\\000")
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func (s *State) toString(L *lua.LState, v lua.LValue) string {
	switch v := v.(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return string(appendNumber(nil, float64(v)))
	case *lua.LUserData:
		return s.userString(v)
	}
	return L.ToStringMeta(v).String()
}

func appendNumber(b []byte, f float64) []byte {
	if f == float64(int64(f)) && f > -1<<53 && f < 1<<53 {
		return strconv.AppendInt(b, int64(f), 10)
	}
	return strconv.AppendFloat(b, f, 'g', -1, 64)
}
