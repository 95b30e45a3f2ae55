package lexical

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"homeagent/memory/store"
)

const (
	// recordVersion 2 added speaker, length and traits to the text record.
	recordVersion = 2
	blockSize     = 256

	subTerms   = 't'
	subWords   = 'w'
	subDF      = 'd'
	subFigures = 'n'
	subText    = 'f'
	subLast    = 'c'
	subFormat  = 'v'
)

// text is what is kept of one indexed event.
type text struct {
	structure
	agent, event, conversation string
}

// structure is what the ranking needs of a text.
type structure struct {
	at         int64  // Unix microseconds
	session    uint64 // number of the first text of its session
	prev, next uint64 // neighbours in the conversation; 0 means none
	length     uint64 // terms of the text itself
	speaker    string // name of who said it; empty for the owner and the agent
	role       byte   // EventKind of the event
	traits     traits
}

func textKey(number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(store.Lexical), subText}, number)
}

func lastKey(agent, conversation string) []byte {
	k := agentKey(subLast, agent)
	return append(k, conversation...)
}

func figuresKey(agent string) []byte { return agentKey(subFigures, agent) }

func agentKey(sub byte, agent string) []byte {
	k := append([]byte{byte(store.Lexical), sub}, agent...)
	return append(k, 0)
}

func dfKey(agent, term string) []byte { return append(agentKey(subDF, agent), term...) }

// termPrefix begins the posting keys of a term in one field.
func termPrefix(field byte, agent, term string) []byte {
	k := append(agentKey(field, agent), term...)
	return append(k, 0)
}

func blockKey(field byte, agent, term string, block uint32) []byte {
	return binary.BigEndian.AppendUint32(termPrefix(field, agent, term), block)
}

func encodeText(key []byte, t *text) []byte {
	b := binary.AppendUvarint(nil, uint64(t.at))
	b = binary.AppendUvarint(b, t.session)
	b = binary.AppendUvarint(b, t.prev)
	b = binary.AppendUvarint(b, t.next)
	b = append(b, t.role)
	b = append(b, byte(t.traits))
	b = binary.AppendUvarint(b, t.length)
	for _, s := range []string{t.agent, t.event, t.conversation, t.speaker} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return store.Seal(recordVersion, key, b)
}

func decodeText(key, record []byte) (text, error) {
	version, b, err := store.Unseal(key, record)
	if err != nil {
		return text{}, err
	}
	if version != 1 && version != recordVersion {
		return text{}, fmt.Errorf("%w: record version %d", ErrCorrupt, version)
	}
	d := decoder{b: b}
	t := text{structure: structure{at: int64(d.uvarint()), session: d.uvarint(), prev: d.uvarint(), next: d.uvarint(), role: d.byte()}}
	if version > 1 {
		t.traits, t.length = traits(d.byte()), d.uvarint()
	}
	t.agent, t.event, t.conversation = d.string(), d.string(), d.string()
	if version > 1 {
		t.speaker = d.string()
	}
	if d.bad || len(d.b) != 0 {
		return text{}, fmt.Errorf("%w: text record", ErrCorrupt)
	}
	return t, nil
}

// decoder reads a record; bad is set once it ends too early.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.bad = true
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) string() string {
	n := d.uvarint()
	if d.bad || n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

// figures of one agent's index.
type figures struct {
	texts, length, terms uint64
}

func encodeFigures(f figures) []byte {
	b := binary.AppendUvarint(nil, f.texts)
	b = binary.AppendUvarint(b, f.length)
	return binary.AppendUvarint(b, f.terms)
}

func decodeFigures(b []byte) (figures, error) {
	d := decoder{b: b}
	f := figures{d.uvarint(), d.uvarint(), d.uvarint()}
	if d.bad || len(d.b) != 0 {
		return figures{}, fmt.Errorf("%w: figures", ErrCorrupt)
	}
	return f, nil
}

// posting is one text of a term.
type posting struct {
	low    byte
	count  byte
	length uint64
}

func appendPosting(b []byte, p posting) []byte {
	b = append(b, p.low, p.count)
	return binary.AppendUvarint(b, p.length)
}

// eachPosting calls fn for each posting of a block.
func eachPosting(b []byte, fn func(posting)) error {
	for len(b) > 0 {
		if len(b) < 3 {
			return fmt.Errorf("%w: posting", ErrCorrupt)
		}
		length, n := binary.Uvarint(b[2:])
		if n <= 0 {
			return fmt.Errorf("%w: posting length", ErrCorrupt)
		}
		fn(posting{low: b[0], count: b[1], length: length})
		b = b[2+n:]
	}
	return nil
}

// get returns the value of key, nil when there is none.
func get(txn store.Txn, key []byte) ([]byte, error) {
	b, err := txn.Get(key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return b, err
}

func putUvarint(txn store.Txn, key []byte, v uint64) error {
	return txn.Put(bytes.Clone(key), binary.AppendUvarint(nil, v))
}

func getUvarint(txn store.Txn, key []byte) (uint64, error) {
	b, err := get(txn, key)
	if err != nil || b == nil {
		return 0, err
	}
	v, n := binary.Uvarint(b)
	if n != len(b) {
		return 0, fmt.Errorf("%w: number at %q", ErrCorrupt, key)
	}
	return v, nil
}
