package luavm

import (
	"context"
	"errors"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// Host is a Go function that a script can call. It runs on the goroutine of
// the call, inside the call's deadline; it must not keep the values it gets
// beyond its return. An error is raised in the script at the calling line.
type Host func(s *State, args []Value) ([]Value, error)

// Options say what a program's states look like.
type Options struct {
	// Limits of each call, the load of the script included.
	Limits Limits
	// Hosts are the modules a script sees beside the standard ones:
	// module name, function name, function.
	Hosts map[string]map[string]Host
	// Funcs are global functions.
	Funcs map[string]Host
	// Use finds the program that use(name) runs while a script is loaded, so
	// that scripts can build on each other; nil means that there is no use.
	Use func(name string) (*Program, error)
	// Ready is called at the end of New, when the exports are there and use
	// still works; an error ends New.
	Ready func(s *State) error
	// Print receives what the script prints, one line a call; nil drops it.
	Print func(line string)
}

// State is one interpreter with the script loaded. It belongs to one goroutine
// at a time; values made by it must not be used with another state.
type State struct {
	vm     *lua.LState
	prog   *Program
	limits Limits
	print  func(string)
	budget budget

	null     *lua.LUserData
	arrayMT  *lua.LTable
	objectMT *lua.LTable
	rawMT    *lua.LTable
	exports  Value
	owner    any

	// env is where all programs of the state run; used holds what use has run,
	// nil for what is being run.
	env   *lua.LTable
	use   func(name string) (*Program, error)
	used  map[string]lua.LValue
	ready bool

	// cause is what raise stopped the script with; the script may have caught
	// it, so it counts only when the text comes out again.
	cause     error
	causeText string
	broken    bool
}

const (
	registryMax  = 256 << 10
	registryStep = 4 << 10
	callDepth    = 200
	// maxIndex is the largest index of a table's array part: a script that
	// sets t[50000000] pays for one entry, not for 800 MB.
	maxIndex = 1 << 20
)

// New makes a state and runs the script once; what the script returns is its
// export. ctx bounds the run. The error is an *Error.
func New(ctx context.Context, p *Program, o Options) (*State, error) {
	boundTables()
	s := &State{prog: p, limits: o.Limits.filled(), print: o.Print}
	s.vm = lua.NewState(lua.Options{
		SkipOpenLibs: true, RegistrySize: 1024, RegistryMaxSize: registryMax, RegistryGrowStep: registryStep,
		CallStackSize: callDepth, MinimizeStackMemory: true,
	})
	s.budget.reset(context.Background(), s.limits, time.Now())
	s.vm.SetContext(&s.budget)
	lib := s.open()
	for name, funcs := range o.Hosts {
		mod := s.vm.NewTable()
		for fname, fn := range funcs {
			mod.RawSetString(fname, s.host(fn))
		}
		lib.RawSetString(name, mod)
	}
	for name, fn := range o.Funcs {
		lib.RawSetString(name, s.host(fn))
	}
	if o.Use != nil {
		s.use, s.used = o.Use, make(map[string]lua.LValue)
		lib.RawSetString("use", s.vm.NewFunction(s.luaUse))
	}
	env, meta := s.vm.NewTable(), s.vm.NewTable()
	meta.RawSetString("__index", lib)
	meta.RawSetString("__newindex", lib)
	meta.RawSetString("__metatable", lua.LString("globals"))
	env.Metatable = meta
	lib.RawSetString("_G", env)
	s.env = env
	fn := s.vm.NewFunctionFromProto(p.proto)
	fn.Env = env
	out, err := s.Call(ctx, Value{fn})
	if err == nil && o.Ready != nil {
		s.exports = out
		err = o.Ready(s)
		out = s.exports
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	s.ready = true
	meta.RawSetString("__newindex", s.vm.NewFunction(func(L *lua.LState) int {
		L.RaiseError("global %q cannot be set in a call: use local, or the state that is passed in", L.ToString(2))
		return 0
	}))
	s.exports = out
	return s, nil
}

// Exports gives what the script returned when it was loaded.
func (s *State) Exports() Value { return s.exports }

// SetExports replaces what the script returned; for Options.Ready.
func (s *State) SetExports(v Value) { s.exports = v }

// Owner gives what SetOwner was given; nil at first. Host functions find by it
// for whom they work.
func (s *State) Owner() any { return s.owner }

// SetOwner says for whom the state works until it is set again.
func (s *State) SetOwner(v any) { s.owner = v }

// Context is that of the call under way; for host functions.
func (s *State) Context() context.Context { return s.budget.outer }

// Waited takes time that a host function spent waiting for somebody else out of
// the call's time limit.
func (s *State) Waited(d time.Duration) { s.budget.deadline = s.budget.deadline.Add(d) }

// Broken tells that a call ended by its budget, its deadline or a crash of the
// interpreter. Such a state must not be used again.
func (s *State) Broken() bool { return s.broken }

// Close frees the interpreter. The state must not be used after it.
func (s *State) Close() { s.vm.Close() }

// Call calls a function value with args and gives its first result. It ends by
// the limits, or when ctx ends; the error is an *Error.
func (s *State) Call(ctx context.Context, fn Value, args ...Value) (Value, error) {
	s.budget.reset(ctx, s.limits, time.Now())
	s.cause, s.causeText = nil, ""
	vals := make([]lua.LValue, len(args))
	for i, a := range args {
		vals[i] = a.lua()
	}
	top := s.vm.GetTop()
	err := s.vm.CallByParam(lua.P{Fn: fn.lua(), NRet: 1, Protect: true}, vals...)
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

// ended describes a call that its budget stopped. The script may have caught
// the error with pcall and returned before the next count; it ended all the same.
func (s *State) ended(err error) error {
	e := &Error{File: s.prog.file, cause: s.budget.err}
	if err != nil {
		var api *lua.ApiError
		if errors.As(err, &api) && api.Object != nil {
			e = place(s.prog.file, api.Object.String(), api.StackTrace, s.budget.err)
		}
	}
	e.Message = s.budget.why(s.limits)
	return e
}

func (s *State) failed(err error) error {
	var api *lua.ApiError
	if !errors.As(err, &api) {
		return place(s.prog.file, err.Error(), "", ErrRuntime)
	}
	text := "error object is not a string"
	if api.Object != nil {
		text = s.toText(api.Object)
	}
	if api.Type == lua.ApiErrorPanic {
		// A crash inside the interpreter: its stacks cannot be trusted.
		s.broken = true
	}
	cause := ErrRuntime
	if s.cause != nil && strings.Contains(text, s.causeText) {
		cause = s.cause
	}
	return place(s.prog.file, text, api.StackTrace, cause)
}

func (s *State) toText(v lua.LValue) string {
	if t, ok := v.(*lua.LTable); ok {
		if b, err := s.Encode(Value{t}); err == nil {
			return string(b)
		}
	}
	if u, ok := v.(*lua.LUserData); ok {
		return s.userString(u)
	}
	return v.String()
}

func (s *State) host(fn Host) *lua.LFunction {
	return s.vm.NewFunction(func(L *lua.LState) int {
		args := make([]Value, L.GetTop())
		for i := range args {
			args[i] = Value{L.Get(i + 1)}
		}
		out, err := fn(s, args)
		if err != nil {
			s.raise(L, err)
		}
		for _, v := range out {
			L.Push(v.lua())
		}
		return len(out)
	})
}
