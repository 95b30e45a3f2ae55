package contextmem

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"homeagent/memory/store"
	"homeagent/messages"
)

const (
	recordVersion = 1

	subEvents        = 'e'
	subConversations = 'c'
	subNumber        = 'n'
)

// Indexer makes events findable in the transaction that stores them.
type Indexer interface {
	// IndexEvents adds the events to an index as part of txn. It must bear the
	// same event twice. An error undoes the transaction.
	IndexEvents(txn store.Txn, events []*messages.EventRecord) error
}

// Context reads and writes the events of a node.
type Context struct {
	db    *store.DB
	index Indexer
}

// New returns the context over db. index may be nil: then nothing is indexed.
func New(db *store.DB, index Indexer) *Context {
	return &Context{db: db, index: index}
}

func agentPrefix(sub byte, agent string) []byte {
	k := append([]byte{byte(store.Event), sub}, agent...)
	return append(k, 0)
}

func eventKey(agent, id string) []byte { return append(agentPrefix(subEvents, agent), id...) }

func conversationPrefix(agent, conversation string) []byte {
	k := append(agentPrefix(subConversations, agent), conversation...)
	return append(k, 0)
}

func conversationKey(agent, conversation, id string) []byte {
	return append(conversationPrefix(agent, conversation), id...)
}

var numberKey = []byte{byte(store.Event), subNumber}

// Append stores events, in order, as part of txn, and indexes them. Events that
// are stored already are left as they are. The context keeps nothing of the
// events it is given.
func (c *Context) Append(txn store.Txn, events ...*messages.Event) error {
	records, err := c.put(txn, events)
	if err != nil || len(records) == 0 || c.index == nil {
		return err
	}
	return c.index.IndexEvents(txn, records)
}

func (c *Context) put(txn store.Txn, events []*messages.Event) ([]*messages.EventRecord, error) {
	number, err := lastNumber(txn)
	if err != nil {
		return nil, err
	}
	var records []*messages.EventRecord
	for _, e := range events {
		if err := validate(e); err != nil {
			return nil, err
		}
		key := eventKey(e.GetAgent(), e.GetEventId())
		if known, err := txn.Has(key); err != nil {
			return nil, err
		} else if known {
			continue
		}
		number++
		r := &messages.EventRecord{Event: e, Number: number}
		value, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("encode event %s: %w", e.GetEventId(), err)
		}
		if err := txn.Put(key, store.Seal(recordVersion, key, value)); err != nil {
			return nil, err
		}
		if err := txn.Put(conversationKey(e.GetAgent(), e.GetConversation(), e.GetEventId()), nil); err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	if len(records) == 0 {
		return nil, nil
	}
	return records, txn.Put(numberKey, binary.BigEndian.AppendUint64(nil, number))
}

func validate(e *messages.Event) error {
	switch {
	case e.GetEventId() == "":
		return fmt.Errorf("%w: no id", ErrInvalid)
	case e.GetAgent() == "":
		return fmt.Errorf("%w: no agent", ErrInvalid)
	case e.GetKind() == messages.EventKind_EVENT_KIND_UNSPECIFIED:
		return fmt.Errorf("%w: no kind", ErrInvalid)
	case strings.ContainsRune(e.GetEventId()+e.GetAgent()+e.GetConversation(), 0):
		return fmt.Errorf("%w: a zero byte in a name", ErrInvalid)
	}
	return nil
}

func lastNumber(txn store.Txn) (uint64, error) {
	b, err := txn.Get(numberKey)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if len(b) != 8 {
		return 0, fmt.Errorf("%w: number of %d bytes", ErrCorrupt, len(b))
	}
	return binary.BigEndian.Uint64(b), nil
}

// Count returns how many events the node holds.
func (c *Context) Count() (n uint64, err error) {
	err = c.db.View(func(txn store.Txn) error {
		n, err = lastNumber(txn)
		return err
	})
	return n, err
}

// Event returns one event of an agent, or ErrNotFound.
func (c *Context) Event(agent, id string) (r *messages.EventRecord, err error) {
	err = c.db.View(func(txn store.Txn) error {
		r, err = Get(txn, agent, id)
		return err
	})
	return r, err
}

// Get is Event inside a transaction.
func Get(txn store.Txn, agent, id string) (*messages.EventRecord, error) {
	key := eventKey(agent, id)
	b, err := txn.Get(key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s of %s", ErrNotFound, id, agent)
	}
	if err != nil {
		return nil, err
	}
	return decode(key, b)
}

func decode(key, b []byte) (*messages.EventRecord, error) {
	version, payload, err := store.Unseal(key, b)
	if err != nil {
		return nil, err
	}
	if version != recordVersion {
		return nil, fmt.Errorf("%w: version %d", ErrCorrupt, version)
	}
	r := &messages.EventRecord{}
	if err := proto.Unmarshal(payload, r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return r, nil
}

// Window says which of the latest events are wanted.
type Window struct {
	// Agent whose context it is.
	Agent string
	// Conversation; empty means all of the agent's.
	Conversation string
	// Before is an event id that the window ends before; empty means the end.
	Before string
	// After is an event id that the window begins after; empty means the beginning.
	After string
	// Events is the most events; zero means 1,000.
	Events int
	// Tokens is the most tokens by Estimate; zero means no limit. The latest
	// event is taken however long it is.
	Tokens int
}

// Last returns the latest events of a window, oldest first.
func (c *Context) Last(w Window) (out []*messages.EventRecord, err error) {
	if w.Events <= 0 {
		w.Events = 1000
	}
	err = c.db.View(func(txn store.Txn) error {
		tokens := 0
		return c.backwards(txn, w, func(r *messages.EventRecord) bool {
			tokens += EstimateEvent(r.GetEvent())
			if w.Tokens > 0 && tokens > w.Tokens && len(out) > 0 {
				return false
			}
			out = append(out, r)
			return len(out) < w.Events
		})
	})
	if err != nil {
		return nil, err
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out, nil
}

// backwards walks a window from its end until fn returns false.
func (c *Context) backwards(txn store.Txn, w Window, fn func(*messages.EventRecord) bool) error {
	prefix := agentPrefix(subEvents, w.Agent)
	if w.Conversation != "" {
		prefix = conversationPrefix(w.Agent, w.Conversation)
	}
	rng := store.Range{Space: store.Event, Prefix: prefix[1:], Reverse: true}
	if w.Before != "" {
		rng.To = append(append([]byte(nil), prefix[1:]...), w.Before...)
	}
	if w.After != "" {
		// The first key behind After itself.
		rng.From = append(append(append([]byte(nil), prefix[1:]...), w.After...), 0)
	}
	for item, err := range txn.Scan(rng) {
		if err != nil {
			return err
		}
		id := string(item.FullKey()[len(prefix):])
		r, err := Get(txn, w.Agent, id)
		if err != nil {
			return err
		}
		if !fn(r) {
			return nil
		}
	}
	return nil
}

// Conversations returns the names of an agent's conversations, sorted.
func (c *Context) Conversations(agent string) (out []string, err error) {
	prefix := agentPrefix(subConversations, agent)
	err = c.db.View(func(txn store.Txn) error {
		for from := prefix[1:]; ; {
			next := ""
			found := false
			for item, err := range txn.Scan(store.Range{Space: store.Event, Prefix: prefix[1:], From: from, Limit: 1}) {
				if err != nil {
					return err
				}
				rest := string(item.FullKey()[len(prefix):])
				i := strings.IndexByte(rest, 0)
				if i < 0 {
					return fmt.Errorf("%w: conversation key", ErrCorrupt)
				}
				next, found = rest[:i], true
			}
			if !found {
				return nil
			}
			out = append(out, next)
			// Past every event of this conversation.
			from = append(append(append([]byte(nil), prefix[1:]...), next...), 1)
		}
	})
	return out, err
}
