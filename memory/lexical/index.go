package lexical

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"homeagent/memory/store"
	"homeagent/messages"
)

// MaxTermBytes bounds the postings written by one call of IndexEvents, keys and
// overhead included, so that a transaction of the store (1 MiB) has room for the
// texts themselves: an index that is too big must never refuse an answer.
const MaxTermBytes = 384 << 10

// sessionGap is the silence that begins a new session of a conversation.
const sessionGap = time.Hour

// Index writes and searches the inverted index of one store. The zero value works
// without the second field and with dates in UTC.
type Index struct {
	// Words is the dictionary for the second field; nil means none.
	Words *Dictionary
	// Zone is the person's zone, in which dates are indexed; nil means UTC.
	Zone *time.Location

	shelf structures
}

// Indexed reports whether an event has text to be found by.
func Indexed(e *messages.Event) bool {
	if e == nil {
		return false
	}
	switch e.GetKind() {
	case messages.EventKind_EVENT_KIND_INPUT, messages.EventKind_EVENT_KIND_RESPONSE, messages.EventKind_EVENT_KIND_NOTE:
		return true
	case messages.EventKind_EVENT_KIND_TOOL, messages.EventKind_EVENT_KIND_UNSPECIFIED:
		return false
	}
	return false
}

// EventText returns the text of an event: its text blocks, one per line. Blocks
// that were brought up from memory are left out: what was recalled is never
// memory again.
func EventText(e *messages.Event) string {
	var b strings.Builder
	for _, block := range e.GetBlocks() {
		t := block.GetContent().GetText()
		if t == "" || block.GetTaint() == messages.Taint_TAINT_RECALLED {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(t)
	}
	return b.String()
}

// IndexEvents adds events to the index as part of txn. An event that is indexed
// already, by its number, is left alone. Events of kinds that are not searched
// (tool calls) and texts that were recalled are skipped.
func (x *Index) IndexEvents(txn store.Txn, events []*messages.EventRecord) error {
	if len(events) == 0 {
		return nil
	}
	if err := settleFormat(txn); err != nil {
		return err
	}
	left := MaxTermBytes
	for _, r := range events {
		if err := x.indexEvent(txn, r, &left); err != nil {
			return fmt.Errorf("index event %s: %w", r.GetEvent().GetEventId(), err)
		}
	}
	return nil
}

func (x *Index) indexEvent(txn store.Txn, r *messages.EventRecord, left *int) error {
	e, number := r.GetEvent(), r.GetNumber()
	if number == 0 || e.GetEventId() == "" || e.GetAgent() == "" || strings.ContainsRune(e.GetAgent(), 0) {
		return ErrInvalid
	}
	if !Indexed(e) || e.GetTaint() == messages.Taint_TAINT_RECALLED {
		return nil
	}
	if known, err := txn.Has(textKey(number)); err != nil || known {
		return err
	}
	body := EventText(e)
	if strings.TrimSpace(body) == "" {
		return nil
	}
	terms := Terms(body)
	if err := x.link(txn, e, number, body, len(terms)); err != nil {
		return err
	}
	return x.post(txn, e, number, body, terms, left)
}

// link writes the text record and ties it to the one before it in its
// conversation. length is the number of terms of the body.
func (x *Index) link(txn store.Txn, e *messages.Event, number uint64, body string, length int) error {
	t := text{
		agent: e.GetAgent(), event: e.GetEventId(), conversation: e.GetConversation(),
		structure: structure{
			at: e.GetAtUs(), session: number, role: byte(e.GetKind()),
			speaker: cut(e.GetPrincipal().GetName()), length: uint64(length), traits: traitsOf(body),
		},
	}
	lastK := lastKey(t.agent, t.conversation)
	last, err := getUvarint(txn, lastK)
	if err != nil {
		return err
	}
	if last != 0 {
		prevK := textKey(last)
		b, err := txn.Get(prevK)
		if err != nil {
			return fmt.Errorf("text before: %w", err)
		}
		prev, err := decodeText(prevK, b)
		if err != nil {
			return err
		}
		if gap := t.at - prev.at; gap >= 0 && gap < sessionGap.Microseconds() {
			t.session = prev.session
		}
		t.prev, prev.next = last, number
		if err := txn.Put(prevK, encodeText(prevK, &prev)); err != nil {
			return err
		}
	}
	if err := txn.Put(lastK, binary.AppendUvarint(nil, number)); err != nil {
		return err
	}
	key := textKey(number)
	return txn.Put(key, encodeText(key, &t))
}

// post writes the postings of one text.
func (x *Index) post(txn store.Txn, e *messages.Event, number uint64, body string, terms []string, left *int) error {
	length := len(terms)
	if name := e.GetPrincipal().GetName(); name != "" {
		terms = append(terms, Terms(name)...)
	}
	terms = append(terms, Terms(x.date(e.GetAtUs()))...)
	fk := figuresKey(e.GetAgent())
	b, err := get(txn, fk)
	if err != nil {
		return err
	}
	var f figures
	if b != nil {
		if f, err = decodeFigures(b); err != nil {
			return err
		}
	}
	p := poster{txn: txn, agent: e.GetAgent(), number: number, length: uint64(length), left: left}
	if err := p.post(subTerms, terms); err != nil {
		return err
	}
	f.terms += p.fresh
	if x.Words != nil {
		if err := p.post(subWords, x.Words.Words(time.UnixMicro(e.GetAtUs()), body)); err != nil {
			return err
		}
	}
	f.texts++
	f.length += uint64(length)
	return txn.Put(fk, encodeFigures(f))
}

func (x *Index) zone() *time.Location {
	if x.Zone == nil {
		return time.UTC
	}
	return x.Zone
}

// date spells the day of a text the ways people ask for it.
func (x *Index) date(us int64) string {
	if us == 0 {
		return ""
	}
	t := time.UnixMicro(us).In(x.zone())
	return t.Format("2 January 2006") + " " + t.Format("2006年1月2日 1月2号")
}

type poster struct {
	txn    store.Txn
	agent  string
	number uint64
	length uint64
	left   *int   // bytes
	fresh  uint64 // terms that were not in the index
}

func (p *poster) post(field byte, terms []string) error {
	counts := make(map[string]int, len(terms))
	order := terms[:0:0]
	for _, t := range terms {
		if counts[t] == 0 {
			order = append(order, t)
		}
		counts[t]++
	}
	block := uint32(p.number / blockSize)
	for _, t := range order {
		key := blockKey(field, p.agent, t, block)
		old, err := get(p.txn, key)
		if err != nil {
			return err
		}
		cost := 2*(len(key)+40) + len(old)
		if *p.left -= cost; *p.left < 0 {
			return nil
		}
		value := appendPosting(append(make([]byte, 0, len(old)+6), old...), posting{
			low: byte(p.number % blockSize), count: byte(min(counts[t], 255)), length: p.length,
		})
		if err := p.txn.Put(key, value); err != nil {
			return err
		}
		if field != subTerms {
			continue
		}
		dk := dfKey(p.agent, t)
		df, err := getUvarint(p.txn, dk)
		if err != nil {
			return err
		}
		if df == 0 {
			p.fresh++
		}
		if err := p.txn.Put(dk, binary.AppendUvarint(nil, df+1)); err != nil {
			return err
		}
	}
	return nil
}

// Figures counts one agent's index.
type Figures struct {
	// Texts indexed.
	Texts uint64
	// Terms known.
	Terms uint64
}

// Figures returns the counts of an agent's index.
func (x *Index) Figures(txn store.Txn, agent string) (Figures, error) {
	b, err := get(txn, figuresKey(agent))
	if err != nil || b == nil {
		return Figures{}, err
	}
	f, err := decodeFigures(b)
	return Figures{Texts: f.texts, Terms: f.terms}, err
}
