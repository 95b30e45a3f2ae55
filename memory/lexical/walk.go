package lexical

import (
	"encoding/binary"

	"homeagent/memory/store"
)

// Indexed texts by number: what stands in the index, for those who keep something beside it.

// Place is where an indexed text stands.
type Place struct {
	Number       uint64
	Agent, Event string
}

// Since returns up to limit indexed texts with numbers above after, in their order.
func Since(txn store.Txn, after uint64, limit int) ([]Place, error) {
	var out []Place
	from := binary.BigEndian.AppendUint64([]byte{subText}, after+1)
	for item, err := range txn.Scan(store.Range{Space: store.Lexical, Prefix: []byte{subText}, From: from, Limit: limit}) {
		if err != nil {
			return nil, err
		}
		value, err := item.Value()
		if err != nil {
			return nil, err
		}
		key := item.FullKey()
		t, err := decodeText(key, value)
		if err != nil {
			return nil, err
		}
		out = append(out, Place{binary.BigEndian.Uint64(key[2:]), t.agent, t.event})
	}
	return out, nil
}
