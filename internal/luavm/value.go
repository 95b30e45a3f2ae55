package luavm

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// Kind is what a Value holds.
type Kind uint8

// The kinds of values. Nil is absent; Null is the JSON null.
const (
	Nil Kind = iota
	Null
	Bool
	Number
	String
	Table
	Raw
	Func
	Other
)

// Value is a value of one State. The zero Value is nil. It must not outlive or
// leave the state that made it.
type Value struct{ v lua.LValue }

func (v Value) lua() lua.LValue {
	if v.v == nil {
		return lua.LNil
	}
	return v.v
}

// Kind tells what the value holds.
func (v Value) Kind() Kind {
	switch x := v.v.(type) {
	case nil, *lua.LNilType:
		return Nil
	case lua.LBool:
		return Bool
	case lua.LNumber:
		return Number
	case lua.LString:
		return String
	case *lua.LTable:
		return Table
	case *lua.LFunction:
		return Func
	case *lua.LUserData:
		switch x.Value.(type) {
		case null:
			return Null
		case raw:
			return Raw
		}
	}
	return Other
}

// Missing tells that the value is nil or null.
func (v Value) Missing() bool { k := v.Kind(); return k == Nil || k == Null }

// Text gives a string value, or "".
func (v Value) Text() string {
	s, _ := v.v.(lua.LString)
	return string(s)
}

// Float gives a number and whether it is one.
func (v Value) Float() (float64, bool) {
	n, ok := v.v.(lua.LNumber)
	return float64(n), ok
}

// Int gives a whole number that fits, and whether it is one.
func (v Value) Int() (int64, bool) {
	f, ok := v.Float()
	if !ok || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// True tells that the value is neither nil, null nor false.
func (v Value) True() bool { return !v.Missing() && v.lua() != lua.LFalse }

// RawText gives the JSON text of a raw value.
func (v Value) RawText() ([]byte, bool) {
	u, ok := v.v.(*lua.LUserData)
	if !ok {
		return nil, false
	}
	b, ok := u.Value.(raw)
	return b, ok
}

// Get gives a field of a table without metamethods; nil for anything else.
func (v Value) Get(key string) Value {
	if t, ok := v.v.(*lua.LTable); ok {
		return Value{t.RawGetString(key)}
	}
	return Value{}
}

// Len is the number of elements of a table's array part.
func (v Value) Len() int {
	if t, ok := v.v.(*lua.LTable); ok {
		return t.Len()
	}
	return 0
}

// At gives the i-th element of a table, from 1 as in Lua.
func (v Value) At(i int) Value {
	if t, ok := v.v.(*lua.LTable); ok {
		return Value{t.RawGetInt(i)}
	}
	return Value{}
}

// Each gives the string-keyed fields of a table in the order they were set,
// until fn returns false.
func (v Value) Each(fn func(key string, val Value) bool) {
	t, ok := v.v.(*lua.LTable)
	if !ok {
		return
	}
	for k, x := t.Next(lua.LNil); k != lua.LNil; k, x = t.Next(k) {
		if name, ok := k.(lua.LString); ok && !fn(string(name), Value{x}) {
			return
		}
	}
}

// Set sets a field of a table and gives the table back. It panics when v is
// no table: that is a mistake of the Go caller.
func (v Value) Set(key string, val Value) Value {
	v.v.(*lua.LTable).RawSetString(key, val.lua())
	return v
}

// Append adds an element to a table.
func (v Value) Append(val Value) Value {
	v.v.(*lua.LTable).Append(val.lua())
	return v
}

// Str makes a string value.
func Str(s string) Value { return Value{lua.LString(s)} }

// Num makes a number value.
func Num(f float64) Value { return Value{lua.LNumber(f)} }

// Boolean makes a boolean value.
func Boolean(b bool) Value { return Value{lua.LBool(b)} }

// Null gives the JSON null of this state.
func (s *State) Null() Value { return Value{s.null} }

// Room of a new table. The interpreter's own default, 32 of each, costs 3 kB a table, and a request has a hundred tables.
const (
	objectRoom = 8
	arrayRoom  = 4
)

// Object makes an empty table that encodes as {} while it stays empty.
func (s *State) Object() Value {
	t := s.vm.CreateTable(0, objectRoom)
	t.Metatable = s.objectMT
	return Value{t}
}

// Array makes an empty table that encodes as an array.
func (s *State) Array() Value {
	t := s.vm.CreateTable(arrayRoom, 0)
	t.Metatable = s.arrayMT
	return Value{t}
}

// Raw makes a value that encodes as the given JSON text; the caller vouches
// for the text and must not change it afterwards.
func (s *State) Raw(b []byte) Value { return Value{s.newRaw(b)} }
