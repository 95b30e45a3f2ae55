package luavm

// Pick gives the original bytes of the value at a path of JSON text: a string
// steps into an object, an int into an array, counted from 1. A step that is
// missing gives nil; of equal keys the last counts. The result shares b. The
// error wraps ErrJSON; what follows the value is not looked at.
func Pick(b []byte, path ...any) ([]byte, error) {
	d := decoder{b: b}
	for depth, step := range path {
		d.space()
		at, err := -1, error(nil)
		switch step := step.(type) {
		case string:
			at, err = d.member(step, depth)
		case int:
			at, err = d.element(step, depth)
		}
		if at < 0 || err != nil {
			return nil, err
		}
		d.i = at
	}
	d.space()
	start := d.i
	if _, err := d.value(len(path)); err != nil {
		return nil, err
	}
	return b[start:d.i:d.i], nil
}

// member gives where the value of a key begins in the object that stands here,
// or -1.
func (d *decoder) member(key string, depth int) (int, error) {
	if d.i >= len(d.b) || d.b[d.i] != '{' {
		return -1, nil
	}
	d.i++
	found := -1
	if d.space(); d.i < len(d.b) && d.b[d.i] == '}' {
		return found, nil
	}
	for {
		d.space()
		if d.i >= len(d.b) || d.b[d.i] != '"' {
			return -1, d.bad("key expected")
		}
		d.keys = true
		name, err := d.str()
		d.keys = false
		if err != nil {
			return -1, err
		}
		if d.space(); d.i >= len(d.b) || d.b[d.i] != ':' {
			return -1, d.bad("':' expected")
		}
		d.i++
		if name == key {
			found = d.i
		}
		if _, err := d.value(depth + 1); err != nil {
			return -1, err
		}
		if done, err := d.next('}'); done || err != nil {
			return found, err
		}
	}
}

// element gives where the n-th element of the array that stands here begins,
// or -1.
func (d *decoder) element(n, depth int) (int, error) {
	if d.i >= len(d.b) || d.b[d.i] != '[' {
		return -1, nil
	}
	d.i++
	if d.space(); d.i < len(d.b) && d.b[d.i] == ']' {
		return -1, nil
	}
	for i := 1; ; i++ {
		if i == n {
			return d.i, nil
		}
		if _, err := d.value(depth + 1); err != nil {
			return -1, err
		}
		if done, err := d.next(']'); done || err != nil {
			return -1, err
		}
	}
}
