package contextmem

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"homeagent/memory/ledger"
	"homeagent/memory/shelf"
	"homeagent/memory/store"
	"homeagent/messages"
)

// Indexer makes events findable in the transaction that stores them.
type Indexer interface {
	// IndexEvents adds the events to an index as part of txn. It must bear the
	// same event twice. An error undoes the transaction.
	IndexEvents(txn store.Txn, events []*messages.EventRecord) error
}

// Context reads the events of a node, and keeps their order by conversation.
type Context struct {
	db   *store.DB
	next Indexer
	kept keptEvents
}

// New returns the context over db. next gets the events after this package has
// indexed them; nil means none.
func New(db *store.DB, next Indexer) *Context {
	return &Context{db: db, next: next, kept: keptEvents{shelf: shelf.Shelf[place, *kept]{Size: shelfSize}}}
}

var (
	listPrefix = []byte{byte(store.Event), 0, 'c'}
	numberKey  = []byte{byte(store.Event), 0, 'n'}
)

func agentPrefix(agent string) []byte {
	return append(append(bytes.Clone(listPrefix), agent...), 0)
}

func conversationPrefix(agent, conversation string) []byte {
	return append(append(agentPrefix(agent), conversation...), 0)
}

// IndexEvents notes the conversation of new events. It implements the ledger's
// Indexer.
func (c *Context) IndexEvents(txn store.Txn, events []*messages.EventRecord) error {
	last, err := lastNumber(txn)
	if err != nil {
		return err
	}
	for _, r := range events {
		e := r.GetEvent()
		if e.GetEventId() == "" || e.GetAgent() == "" || strings.ContainsRune(e.GetEventId()+e.GetAgent()+e.GetConversation(), 0) {
			return fmt.Errorf("%w: %q of agent %q", ErrInvalid, e.GetEventId(), e.GetAgent())
		}
		key := append(conversationPrefix(e.GetAgent(), e.GetConversation()), e.GetEventId()...)
		if err := txn.Put(key, nil); err != nil {
			return err
		}
		last = max(last, r.GetNumber())
	}
	if err := txn.Put(bytes.Clone(numberKey), binary.BigEndian.AppendUint64(nil, last)); err != nil {
		return err
	}
	if c.next == nil {
		return nil
	}
	return c.next.IndexEvents(txn, events)
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
	r, err := ledger.WholeEvent(txn, agent, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s of %s", ErrNotFound, id, agent)
	}
	return r, err
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

// Last returns the latest events of a window, oldest first. They are frozen: others get the same ones.
func (c *Context) Last(w Window) (out []*messages.EventRecord, err error) {
	if w.Events <= 0 {
		w.Events = 1000
	}
	err = c.db.View(func(txn store.Txn) error {
		tokens := 0
		return c.backwards(txn, w, func(k *kept) bool {
			tokens += k.tokens
			if w.Tokens > 0 && tokens > w.Tokens && len(out) > 0 {
				return false
			}
			out = append(out, k.record)
			return len(out) < w.Events
		})
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(out)
	return out, nil
}

// backwards walks a window from its end until fn returns false.
func (c *Context) backwards(txn store.Txn, w Window, fn func(*kept) bool) error {
	prefix := ledger.EventPrefix(w.Agent)
	if w.Conversation != "" {
		prefix = conversationPrefix(w.Agent, w.Conversation)[1:]
	}
	rng := store.Range{Space: store.Event, Prefix: prefix, Reverse: true}
	if w.Before != "" {
		rng.To = append(bytes.Clone(prefix), w.Before...)
	}
	if w.After != "" {
		// The first key behind After itself.
		rng.From = append(append(bytes.Clone(prefix), w.After...), 0)
	}
	for item, err := range txn.Scan(rng) {
		if err != nil {
			return err
		}
		k, err := c.kept.get(txn, w.Agent, string(item.Key()[len(prefix):]))
		if err != nil {
			return err
		}
		if !fn(k) {
			return nil
		}
	}
	return nil
}

// Conversations returns the names of an agent's conversations, sorted.
func (c *Context) Conversations(agent string) (out []string, err error) {
	prefix := agentPrefix(agent)
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
