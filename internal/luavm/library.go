package luavm

import (
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
)

// boundTables lowers the interpreter's limit for the array part of tables. The
// limit is a variable of the interpreter, shared by the process; this package
// is its only user.
var boundTables = sync.OnceFunc(func() { lua.MaxArrayIndex = maxIndex })

var gone = []string{
	"collectgarbage", "dofile", "getfenv", "setfenv", "load", "loadfile", "loadstring", "module", "require",
	"newproxy", "_printregs", "_GOPHER_LUA_VERSION",
}

// open opens the libraries a script may use and gives the table of globals.
func (s *State) open() *lua.LTable {
	L := s.vm
	for _, l := range []struct {
		name string
		fn   lua.LGFunction
	}{{lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}, {lua.StringLibName, lua.OpenString}, {lua.MathLibName, lua.OpenMath}} {
		L.Push(L.NewFunction(l.fn))
		L.Push(lua.LString(l.name))
		L.Call(1, 0)
	}
	globals := L.G.Global
	for _, name := range gone {
		globals.RawSetString(name, lua.LNil)
	}
	s.stringLib(globals.RawGetString("string").(*lua.LTable))
	globals.RawGetString("table").(*lua.LTable).RawSetString("concat", L.NewFunction(s.tableConcat))
	globals.RawSetString(concatName, L.NewFunction(s.concat))
	globals.RawSetString("tostring", L.NewFunction(func(L *lua.LState) int {
		L.Push(lua.LString(s.toString(L, L.CheckAny(1))))
		return 1
	}))
	globals.RawSetString("print", L.NewFunction(s.printLine))
	s.markers()
	globals.RawSetString("json", s.jsonLib())
	return globals
}

// maxPrint keeps a script from filling the log; a line is cut there.
const maxPrint = 4 << 10

func (s *State) printLine(L *lua.LState) int {
	if s.print == nil {
		return 0
	}
	var b strings.Builder
	for i := 1; i <= L.GetTop() && b.Len() < maxPrint; i++ {
		if i > 1 {
			b.WriteByte('\t')
		}
		b.WriteString(s.toString(L, L.Get(i)))
	}
	line := b.String()
	if len(line) > maxPrint {
		line = line[:maxPrint]
	}
	s.print(strings.ToValidUTF8(line, "\uFFFD"))
	return 0
}

// raw is JSON text that is written as it stands.
type raw []byte

type null struct{}

func (s *State) markers() {
	mark := func(name string) *lua.LTable {
		mt := s.vm.NewTable()
		mt.RawSetString("__metatable", lua.LString(name))
		return mt
	}
	s.arrayMT, s.objectMT, s.rawMT = mark("json.array"), mark("json.object"), mark("json.raw")
	s.null = s.vm.NewUserData()
	s.null.Value = null{}
	s.null.Metatable = mark("json.null")
}

func (s *State) typeName(v lua.LValue) string {
	if v == s.null {
		return "json.null"
	}
	return v.Type().String()
}

func (s *State) userString(u *lua.LUserData) string {
	switch v := u.Value.(type) {
	case raw:
		return string(v)
	case null:
		return "null"
	}
	return "userdata"
}

func (s *State) newRaw(b []byte) *lua.LUserData {
	u := s.vm.NewUserData()
	u.Value = raw(b)
	u.Metatable = s.rawMT
	return u
}

func (s *State) jsonLib() *lua.LTable {
	mod := s.vm.NewTable()
	mod.RawSetString("null", s.null)
	mod.RawSetString("empty_array", s.newRaw([]byte("[]")))
	mod.RawSetString("empty_object", s.newRaw([]byte("{}")))
	for name, fn := range map[string]lua.LGFunction{
		"encode": s.luaEncode, "decode": s.luaDecode, "raw": s.luaRaw, "get": s.luaGet, "pick": s.luaPick,
		"array":  func(L *lua.LState) int { return s.luaMark(L, s.arrayMT) },
		"object": func(L *lua.LState) int { return s.luaMark(L, s.objectMT) },
	} {
		mod.RawSetString(name, s.vm.NewFunction(fn))
	}
	return mod
}

func (s *State) luaEncode(L *lua.LState) int {
	b, err := s.Encode(Value{L.Get(1)})
	if err != nil {
		s.raise(L, err)
	}
	s.pay(L, "json.encode", len(b))
	L.Push(lua.LString(b))
	return 1
}

func (s *State) luaDecode(L *lua.LState) int {
	text := L.CheckString(1)
	s.pay(L, "json.decode", len(text))
	v, err := s.Decode([]byte(text))
	if err != nil {
		L.Push(lua.LNil)
		L.Push(lua.LString(err.Error()))
		return 2
	}
	L.Push(v.lua())
	return 1
}

func (s *State) luaRaw(L *lua.LState) int {
	text := L.CheckString(1)
	s.pay(L, "json.raw", len(text))
	if err := Valid([]byte(text)); err != nil {
		s.raise(L, err)
	}
	L.Push(s.newRaw([]byte(text)))
	return 1
}

// luaPick gives the original bytes at a path of JSON text as a raw value.
func (s *State) luaPick(L *lua.LState) int {
	text := L.CheckString(1)
	s.pay(L, "json.pick", len(text))
	path := make([]any, 0, L.GetTop())
	for i := 2; i <= L.GetTop(); i++ {
		switch k := L.Get(i).(type) {
		case lua.LString:
			path = append(path, string(k))
		case lua.LNumber:
			path = append(path, int(k))
		default:
			L.ArgError(i, "a key or an index expected")
		}
	}
	b, err := Pick([]byte(text), path...)
	switch {
	case err != nil:
		L.Push(lua.LNil)
		L.Push(lua.LString(err.Error()))
		return 2
	case b == nil || string(b) == "null":
		L.Push(lua.LNil)
	default:
		L.Push(s.newRaw(b))
	}
	return 1
}

func (s *State) luaMark(L *lua.LState, mt *lua.LTable) int {
	t := L.OptTable(1, nil)
	if t == nil {
		t = L.NewTable()
	}
	t.Metatable = mt
	L.Push(t)
	return 1
}

func (s *State) luaGet(L *lua.LState) int {
	v := L.Get(1)
	for i := 2; i <= L.GetTop(); i++ {
		t, ok := v.(*lua.LTable)
		if !ok {
			v = lua.LNil
			break
		}
		v = t.RawGet(L.Get(i))
	}
	if v == s.null {
		v = lua.LNil
	}
	L.Push(v)
	return 1
}
