package luavm

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"
)

// Use runs another program in this state and gives what it returns, once per
// name. It works while the state is being made; the budget of the load pays.
func (s *State) Use(name string) (Value, error) {
	if s.use == nil {
		return Value{}, fmt.Errorf("%w: there is no use", ErrRuntime)
	}
	if v, ok := s.used[name]; ok && v != nil {
		return Value{v}, nil
	}
	top := s.vm.GetTop()
	fn := s.vm.GetField(s.env, "use")
	err := s.vm.CallByParam(lua.P{Fn: fn, NRet: 1, Protect: true}, lua.LString(name))
	if s.budget.err != nil {
		s.broken = true
		return Value{}, s.ended(err)
	}
	if err != nil {
		return Value{}, s.failed(err)
	}
	out := s.vm.Get(-1)
	s.vm.SetTop(top)
	return Value{out}, nil
}

// luaUse is the function use of scripts.
func (s *State) luaUse(L *lua.LState) int {
	name := L.CheckString(1)
	if s.ready {
		L.RaiseError("use works only while the file is loaded, outside of its functions")
	}
	if v, ok := s.used[name]; ok {
		if v == nil {
			L.RaiseError("%s uses itself", name)
		}
		L.Push(v)
		return 1
	}
	p, err := s.use(name)
	if err != nil {
		s.raise(L, err)
	}
	s.used[name] = nil
	fn := s.vm.NewFunctionFromProto(p.proto)
	fn.Env = s.env
	L.Push(fn)
	L.Call(0, 1)
	s.used[name] = L.Get(-1)
	return 1
}
