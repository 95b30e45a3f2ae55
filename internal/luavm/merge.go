package luavm

import lua "github.com/yuin/gopher-lua"

// IsArray tells whether the value encodes as a JSON array.
func (s *State) IsArray(v Value) bool {
	t, ok := v.v.(*lua.LTable)
	return ok && (t.Metatable == s.arrayMT || t.Metatable != s.objectMT && t.Len() > 0)
}

// Merge sets the fields of patch in dst: objects field by field, null removes,
// anything else replaces. Both must be of this state; dst must be a table.
// What is set is shared with patch.
func (s *State) Merge(dst, patch Value) { s.merge(dst, patch, 0) }

func (s *State) merge(dst, patch Value, depth int) {
	patch.Each(func(key string, v Value) bool {
		old := dst.Get(key)
		switch {
		case v.Kind() == Null:
			dst.Set(key, Value{})
		case depth < maxDepth && v.Kind() == Table && old.Kind() == Table && !s.IsArray(v) && !s.IsArray(old):
			s.merge(old, v, depth+1)
		default:
			dst.Set(key, v)
		}
		return true
	})
}
