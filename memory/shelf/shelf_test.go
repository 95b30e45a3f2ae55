package shelf_test

import (
	"testing"

	"homeagent/memory/shelf"
)

func TestShelf(t *testing.T) {
	s := shelf.Shelf[int, string]{Size: 2}
	want := func(key int, there bool) {
		t.Helper()
		if v, ok := s.Get(key); ok != there || ok && v != "v" {
			t.Errorf("key %d: %q %v, want it there: %v", key, v, ok, there)
		}
	}
	s.Put(1, "v")
	s.Put(2, "v")
	s.Put(3, "v") // 1 and 2 are old now
	want(1, true) // and young again, which fills that generation
	s.Put(4, "v") // so 2, that nobody asked for, goes
	want(2, false)
	want(1, true)
	want(3, true)
	for k := 10; k < 20; k++ {
		s.Put(k, "v")
	}
	want(1, false)
	want(19, true)
	s.Clear()
	want(19, false)
}

func TestDefaultSize(t *testing.T) {
	var s shelf.Shelf[int, int]
	for k := range 10 * shelf.DefaultSize {
		s.Put(k, k)
	}
	if n := s.Len(); n <= shelf.DefaultSize || n > 2*shelf.DefaultSize {
		t.Errorf("%d are kept", n)
	}
}
