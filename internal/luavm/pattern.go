package luavm

import "errors"

// The matcher of Lua patterns. The interpreter's own is recursive without
// limits: '.-' four times over 120 characters took ten seconds, deaf to the
// context. This one charges the budget per step and limits its depth.

const (
	maxCaptures  = 32
	maxMatchDeep = 200
	capOpen      = -1
	capPosition  = -2
)

var errPattern = errors.New("malformed pattern")

type span struct{ start, length int }

type matcher struct {
	src, pat string
	budget   *budget
	level    int
	deep     int
	caps     [maxCaptures]span
	err      error
}

// match tries the pattern from p at s and gives the end of the match, or -1.
func (m *matcher) match(s, p int) int {
	m.deep++
	defer func() { m.deep-- }()
	if m.deep > maxMatchDeep {
		m.fail(ErrLimit)
		return -1
	}
	for m.err == nil {
		if err := m.budget.charge(1); err != nil {
			m.fail(err)
			return -1
		}
		if p == len(m.pat) {
			return s
		}
		switch m.pat[p] {
		case '(':
			if p+1 < len(m.pat) && m.pat[p+1] == ')' {
				return m.open(s, p+2, capPosition)
			}
			return m.open(s, p+1, capOpen)
		case ')':
			return m.shut(s, p+1)
		case '$':
			if p+1 == len(m.pat) {
				if s == len(m.src) {
					return s
				}
				return -1
			}
		case '%':
			if p+1 < len(m.pat) {
				switch c := m.pat[p+1]; {
				case c == 'b':
					if s = m.balance(s, p+2); s == -1 {
						return -1
					}
					p += 4
					continue
				case c == 'f':
					if p, s = m.frontier(s, p+2); s == -1 {
						return -1
					}
					continue
				case c >= '0' && c <= '9':
					if s = m.backref(s, int(c-'1')); s == -1 {
						return -1
					}
					p += 2
					continue
				}
			}
		}
		ep := m.classEnd(p)
		if m.err != nil {
			return -1
		}
		var quant byte
		if ep < len(m.pat) {
			quant = m.pat[ep]
		}
		switch quant {
		case '?':
			if s < len(m.src) && m.single(s, p, ep) {
				if e := m.match(s+1, ep+1); e != -1 {
					return e
				}
			}
			p = ep + 1
		case '*':
			return m.greedy(s, p, ep, 0)
		case '+':
			return m.greedy(s, p, ep, 1)
		case '-':
			return m.lazy(s, p, ep)
		default:
			if s >= len(m.src) || !m.single(s, p, ep) {
				return -1
			}
			s, p = s+1, ep
		}
	}
	return -1
}

func (m *matcher) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

func (m *matcher) greedy(s, p, ep, least int) int {
	n := 0
	for s+n < len(m.src) && m.single(s+n, p, ep) {
		n++
	}
	if err := m.budget.charge(n); err != nil {
		m.fail(err)
		return -1
	}
	for ; n >= least && m.err == nil; n-- {
		if e := m.match(s+n, ep+1); e != -1 {
			return e
		}
	}
	return -1
}

func (m *matcher) lazy(s, p, ep int) int {
	for m.err == nil {
		if e := m.match(s, ep+1); e != -1 {
			return e
		}
		if s >= len(m.src) || !m.single(s, p, ep) {
			return -1
		}
		s++
	}
	return -1
}

func (m *matcher) open(s, p, what int) int {
	if m.level >= maxCaptures {
		m.fail(ErrLimit)
		return -1
	}
	m.caps[m.level] = span{s, what}
	m.level++
	e := m.match(s, p)
	if e == -1 {
		m.level--
	}
	return e
}

func (m *matcher) shut(s, p int) int {
	l := -1
	for i := m.level - 1; i >= 0; i-- {
		if m.caps[i].length == capOpen {
			l = i
			break
		}
	}
	if l == -1 {
		m.fail(errPattern)
		return -1
	}
	m.caps[l].length = s - m.caps[l].start
	e := m.match(s, p)
	if e == -1 {
		m.caps[l].length = capOpen
	}
	return e
}

func (m *matcher) balance(s, p int) int {
	if p+1 >= len(m.pat) {
		m.fail(errPattern)
		return -1
	}
	if s >= len(m.src) || m.src[s] != m.pat[p] {
		return -1
	}
	open, shut, depth := m.pat[p], m.pat[p+1], 1
	for i := s + 1; i < len(m.src); i++ {
		switch m.src[i] {
		case shut:
			if depth--; depth == 0 {
				return i + 1
			}
		case open:
			depth++
		}
	}
	return -1
}

// frontier matches %f[set] and gives where pattern and subject go on.
func (m *matcher) frontier(s, p int) (int, int) {
	if p >= len(m.pat) || m.pat[p] != '[' {
		m.fail(errPattern)
		return p, -1
	}
	ep := m.classEnd(p)
	if m.err != nil {
		return p, -1
	}
	var before, here byte
	if s > 0 {
		before = m.src[s-1]
	}
	if s < len(m.src) {
		here = m.src[s]
	}
	if m.inSet(before, p, ep-1) || !m.inSet(here, p, ep-1) {
		return p, -1
	}
	return ep, s
}

func (m *matcher) backref(s, l int) int {
	if l < 0 || l >= m.level || m.caps[l].length == capOpen {
		m.fail(errors.New("invalid capture index"))
		return -1
	}
	n := m.caps[l].length
	if n == capPosition {
		return -1
	}
	was := m.src[m.caps[l].start : m.caps[l].start+n]
	if len(m.src)-s >= n && m.src[s:s+n] == was {
		return s + n
	}
	return -1
}

// classEnd gives the place behind the single-character class at p.
func (m *matcher) classEnd(p int) int {
	c := m.pat[p]
	p++
	switch c {
	case '%':
		if p >= len(m.pat) {
			m.fail(errPattern)
			return p
		}
		return p + 1
	case '[':
		if p < len(m.pat) && m.pat[p] == '^' {
			p++
		}
		for first := true; first || p >= len(m.pat) || m.pat[p] != ']'; first = false {
			if p >= len(m.pat) {
				m.fail(errPattern)
				return p
			}
			if m.pat[p] == '%' {
				p++
			}
			p++
		}
		return p + 1
	}
	return p
}

func (m *matcher) single(s, p, ep int) bool {
	c := m.src[s]
	switch m.pat[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.pat[p+1])
	case '[':
		return m.inSet(c, p, ep-1)
	}
	return m.pat[p] == c
}

// inSet tells whether c is in the set between p ('[') and ec (']').
func (m *matcher) inSet(c byte, p, ec int) bool {
	in := true
	if m.pat[p+1] == '^' {
		in = false
		p++
	}
	for p++; p < ec; p++ {
		switch {
		case m.pat[p] == '%':
			p++
			if p < len(m.pat) && inClass(c, m.pat[p]) {
				return in
			}
		case p+2 < ec && m.pat[p+1] == '-':
			if m.pat[p] <= c && c <= m.pat[p+2] {
				return in
			}
			p += 2
		case m.pat[p] == c:
			return in
		}
	}
	return !in
}

func inClass(c, class byte) bool {
	var in bool
	switch class | 0x20 {
	case 'a':
		in = isAlpha(c)
	case 'c':
		in = c < 0x20 || c == 0x7f
	case 'd':
		in = isDigit(c)
	case 'l':
		in = c >= 'a' && c <= 'z'
	case 'p':
		in = c > 0x20 && c < 0x7f && !isAlpha(c) && !isDigit(c)
	case 's':
		in = c == ' ' || c >= '\t' && c <= '\r'
	case 'u':
		in = c >= 'A' && c <= 'Z'
	case 'w':
		in = isAlpha(c) || isDigit(c)
	case 'x':
		in = isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f'
	case 'z':
		in = c == 0
	default:
		return class == c
	}
	if class < 'a' {
		return !in
	}
	return in
}

func isAlpha(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// find looks for the first match at or after from; ok tells whether there is
// one. Captures stay in the matcher.
func (m *matcher) find(from int) (start, end int, ok bool) {
	pat, anchored := m.pat, false
	p := 0
	if pat != "" && pat[0] == '^' {
		p, anchored = 1, true
	}
	for s := from; s <= len(m.src) && m.err == nil; s++ {
		m.level = 0
		if e := m.match(s, p); e != -1 {
			return s, e, true
		}
		if anchored {
			break
		}
	}
	return 0, 0, false
}
