package graphmem

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cayleygraph/quad"
	"github.com/hidal-go/hidalgo/kv"
	"github.com/hidal-go/hidalgo/kv/flat"

	"homeagent/memory/store"
)

// Keys of the package inside the space 'g':
//
//	gq<generation>  cayley's keys; a rewrite of the graph goes to the next generation
//	gn<key>         name index: version byte, name
//	go<subject key>\0<predicate key>\0<object key>\0<id>  facts without an end; no value
//	gc              how many facts were ever stored: eight bytes, big end first
const (
	space      = byte(store.Graph)
	subQuads   = 'q'
	subNames   = 'n'
	subOpen    = 'o'
	subCount   = 'c'
	generation = 0
)

func quadPrefix(gen byte) []byte { return []byte{space, subQuads, gen} }

func nameKey(key string) []byte {
	return append([]byte{space, subNames}, key...)
}

var countKey = []byte{space, subCount}

// openPrefix begins the keys of the open facts of a subject and predicate. Name
// keys hold no zero byte (see Key).
func openPrefix(f *Fact) []byte {
	k := append([]byte{space, subOpen}, Key(f.Subject)...)
	k = append(append(k, 0), Key(f.Predicate)...)
	return append(k, 0)
}

// openKey is the key of one open fact: the prefix, the key of the object, its id.
func openKey(f *Fact) []byte {
	k := append(openPrefix(f), Key(f.Object)...)
	return append(append(k, 0), f.ID...)
}

// splitOpen splits what follows openPrefix in an open key.
func splitOpen(rest []byte) (object, id string, err error) {
	i := bytes.IndexByte(rest, 0)
	if i < 0 {
		return "", "", fmt.Errorf("%w: open fact %q", ErrCorrupt, rest)
	}
	return string(rest[:i]), string(rest[i+1:]), nil
}

// indexKey is the key of cayley's index over dirs ("op", "spo", ...) for the
// leading ids.
func indexKey(dirs string, ids ...uint64) flat.Key {
	buf := make([]byte, 0, 8*len(ids))
	for _, id := range ids {
		buf = binary.BigEndian.AppendUint64(buf, id)
	}
	return flat.KeyEscape(kv.Key{[]byte(dirs), buf})
}

// indexIDs decodes the ids of a key of cayley's index over n directions.
func indexIDs(key flat.Key, n int) ([]uint64, error) {
	k, ok := unescape(key)
	if !ok || len(k) != 2 || len(k[1]) != 8*n {
		return nil, fmt.Errorf("%w: index key %x", ErrCorrupt, []byte(key))
	}
	ids := make([]uint64, n)
	for i := range ids {
		ids[i] = binary.BigEndian.Uint64(k[1][8*i:])
	}
	return ids, nil
}

// unescape is flat.KeyUnescape for bytes that may be damaged: that one indexes
// past the end when the last byte is an escape.
func unescape(key flat.Key) (kv.Key, bool) {
	esc := 0
	for i := len(key) - 1; i >= 0 && key[i] == '\\'; i-- {
		esc++
	}
	if esc%2 == 1 {
		return nil, false
	}
	return flat.KeyUnescape(key), true
}

// decodeList decodes the value of an index: ids of quads, oldest first.
func decodeList(b []byte) ([]uint64, error) {
	out := make([]uint64, 0, len(b)/2)
	for len(b) > 0 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, fmt.Errorf("%w: index list", ErrCorrupt)
		}
		out = append(out, v)
		b = b[n:]
	}
	return out, nil
}

func logKey(id uint64) flat.Key {
	return flat.KeyEscape(kv.Key{[]byte("log"), binary.BigEndian.AppendUint64(nil, id)})
}

func valueKey(v quad.Value) flat.Key {
	h := quad.HashOf(v)
	return flat.KeyEscape(kv.Key{{'v', h[0], h[1]}, h})
}
