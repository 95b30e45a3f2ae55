// Package kvtest is the conformance suite of configs.KV: whoever implements the
// interface runs it against the implementation.
package kvtest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"homeagent/configs"
)

// Run checks the obligations of configs.KV. open returns a new, empty store for
// each call and registers its own cleanup.
func Run(t *testing.T, open func(t *testing.T) configs.KV) {
	t.Helper()
	cases := []struct {
		name string
		run  func(t *testing.T, kv configs.KV)
	}{
		{"missing", missing},
		{"put_get_delete", putGetDelete},
		{"empty_value_and_empty_key", emptyValue},
		{"values_are_copied", copies},
		{"iterate_order_and_prefix", iterateOrder},
		{"iterate_stops_on_error", iterateError},
		{"binary_values", binaryValues},
		{"concurrent", concurrent},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

func missing(t *testing.T, kv configs.KV) {
	value, found, err := kv.Get("core.none")
	if err != nil || found || len(value) != 0 {
		t.Fatalf("Get of a missing key = %q, %v, %v", value, found, err)
	}
	if err := kv.Delete("core.none"); err != nil {
		t.Fatalf("Delete of a missing key: %v", err)
	}
}

func putGetDelete(t *testing.T, kv configs.KV) {
	put(t, kv, "core.a", "1")
	put(t, kv, "core.a", "2")
	want(t, kv, "core.a", "2")
	if err := kv.Delete("core.a"); err != nil {
		t.Fatal(err)
	}
	if _, found, err := kv.Get("core.a"); found || err != nil {
		t.Fatalf("after Delete: found %v, err %v", found, err)
	}
}

func emptyValue(t *testing.T, kv configs.KV) {
	put(t, kv, "core.empty", "")
	want(t, kv, "core.empty", "")
	if err := kv.Put("", []byte("x")); err == nil {
		t.Fatal("Put under the empty key was accepted")
	}
}

func copies(t *testing.T, kv configs.KV) {
	value := []byte("before")
	if err := kv.Put("core.a", value); err != nil {
		t.Fatal(err)
	}
	copy(value, "AFTER!")
	got, _, err := kv.Get("core.a")
	if err != nil || string(got) != "before" {
		t.Fatalf("the store kept the caller's slice: %q, %v", got, err)
	}
	copy(got, "AFTER!")
	want(t, kv, "core.a", "before")
}

func iterateOrder(t *testing.T, kv configs.KV) {
	for _, key := range []string{"core.b", "core.a", "core.a.x", "plugin.a", "core"} {
		put(t, kv, key, "v:"+key)
	}
	cases := []struct {
		prefix string
		want   []string
	}{
		{"", []string{"core", "core.a", "core.a.x", "core.b", "plugin.a"}},
		{"core.", []string{"core.a", "core.a.x", "core.b"}},
		{"core.a.", []string{"core.a.x"}},
		{"none", nil},
	}
	for _, c := range cases {
		var got []string
		err := kv.Iterate(c.prefix, func(key string, value []byte) error {
			if string(value) != "v:"+key {
				return fmt.Errorf("key %q has value %q", key, value)
			}
			got = append(got, key)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("Iterate(%q) = %q, want %q", c.prefix, got, c.want)
		}
	}
}

func iterateError(t *testing.T, kv configs.KV) {
	put(t, kv, "core.a", "1")
	put(t, kv, "core.b", "2")
	stop := errors.New("stop")
	calls := 0
	err := kv.Iterate("", func(string, []byte) error { calls++; return stop })
	if err != stop || calls != 1 { //nolint:errorlint // the contract says unchanged
		t.Fatalf("Iterate returned %v after %d calls, want the callback's own error after 1", err, calls)
	}
}

func binaryValues(t *testing.T, kv configs.KV) {
	value := make([]byte, 70_000)
	for i := range value {
		value[i] = byte(i * 7)
	}
	if err := kv.Put("core.binary", value); err != nil {
		t.Fatal(err)
	}
	got, found, err := kv.Get("core.binary")
	if err != nil || !found || !bytes.Equal(got, value) {
		t.Fatalf("a binary value of %d bytes came back with %d bytes, %v, %v", len(value), len(got), found, err)
	}
}

func concurrent(t *testing.T, kv configs.KV) {
	const writers, each = 8, 25
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				key := fmt.Sprintf("core.w%d.%02d", w, i)
				if err := kv.Put(key, []byte(key)); err != nil {
					t.Error(err)
					return
				}
				if got, found, err := kv.Get(key); err != nil || !found || string(got) != key {
					t.Errorf("Get(%q) right after Put = %q, %v, %v", key, got, found, err)
					return
				}
			}
		})
	}
	group.Wait()
	count := 0
	if err := kv.Iterate("core.w", func(string, []byte) error { count++; return nil }); err != nil {
		t.Fatal(err)
	}
	if count != writers*each {
		t.Fatalf("%d keys after concurrent writes, want %d", count, writers*each)
	}
}

func put(t *testing.T, kv configs.KV, key, value string) {
	t.Helper()
	if err := kv.Put(key, []byte(value)); err != nil {
		t.Fatalf("Put(%q): %v", key, err)
	}
}

func want(t *testing.T, kv configs.KV, key, value string) {
	t.Helper()
	got, found, err := kv.Get(key)
	if err != nil || !found || string(got) != value {
		t.Fatalf("Get(%q) = %q, %v, %v, want %q", key, got, found, err, value)
	}
}
