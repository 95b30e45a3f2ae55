package usage

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"homeagent/memory/store"
	"homeagent/messages"
)

// Engine reads usage and marks of a store.
type Engine struct{ db *store.DB }

// NewEngine returns the engine over a store, which stays the caller's to close.
func NewEngine(db *store.DB) *Engine { return &Engine{db: db} }

// Loaded is what a start needs.
type Loaded struct {
	// Rows of the month.
	Rows []*messages.UsageRow
	// Marks of all sources, by name.
	Marks []*messages.SourceMarks
	// Damaged are the keys of records that cannot be read.
	Damaged []string
}

// Load returns the rows of a month, such as 2027-03, and all marks.
func (e *Engine) Load(month string) (Loaded, error) {
	var out Loaded
	err := e.scan(dayPrefix+month, "", "", func(key, record []byte) error {
		r, err := DecodeRow(key, record)
		if err == nil {
			out.Rows = append(out.Rows, r)
		}
		return err
	}, &out.Damaged)
	if err == nil {
		err = e.scan(markPrefix, "", "", func(key, record []byte) error {
			m, err := DecodeMarks(key, record)
			if err == nil {
				out.Marks = append(out.Marks, m)
			}
			return err
		}, &out.Damaged)
	}
	return out, err
}

// scan reads the records below a prefix, or of the keys from one to before another, which are within the space.
func (e *Engine) scan(prefix, from, to string, take func(key, record []byte) error, damaged *[]string) error {
	return e.db.View(func(txn store.Txn) error {
		r := store.Range{Space: store.Usage, Prefix: []byte(prefix)}
		if from != "" {
			r.From = []byte(from)
		}
		if to != "" {
			r.To = []byte(to)
		}
		for item, err := range txn.Scan(r) {
			if err != nil {
				return fmt.Errorf("read usage: %w", err)
			}
			value, err := item.Value()
			if err != nil {
				return fmt.Errorf("read usage: %w", err)
			}
			err = take(item.FullKey(), value)
			if errors.Is(err, store.ErrRecord) {
				*damaged = append(*damaged, string(item.Key()))
				continue
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// MaxAnswer is the most rows of an answer.
const MaxAnswer = 10_000

// Query is a question about usage.
type Query struct {
	// From and To are the first and last day.
	From, To string
	// By are the fields that rows are kept apart by; see Fields.
	By []string
	// Newer are rows that take the place of stored ones, as the writer has them.
	Newer []*messages.UsageRow
}

// Sums are what came of it.
type Sums struct {
	Rows  []*messages.UsageRow
	Total *messages.UsageRow
	// Cut tells that there were more rows than MaxAnswer; the total has them all.
	Cut bool
	// Damaged are the keys of records that cannot be read; they are in no sum.
	Damaged []string
}

// Fields are what rows can be kept apart by.
var Fields = []string{"day", "source", "model", "agent", "channel", "conversation"}

// Check names what is wrong with a query.
func (q Query) Check() error {
	for _, f := range q.By {
		if !slices.Contains(Fields, f) {
			return fmt.Errorf("%w: %.40q; there are %s", ErrField, f, strings.Join(Fields, ", "))
		}
	}
	for _, d := range []string{q.From, q.To} {
		if err := ParseDay(d); err != nil {
			return fmt.Errorf("%w: %.40q", err, d)
		}
	}
	return nil
}

// Ask sums rows up.
func (e *Engine) Ask(q Query) (Sums, error) {
	if err := q.Check(); err != nil {
		return Sums{}, err
	}
	s := newSummer(q)
	err := e.scan("", dayPrefix+q.From, dayPrefix+q.To+"/~", func(key, record []byte) error {
		r, err := DecodeRow(key, record)
		if err != nil {
			return err
		}
		if s.own[rowKey(r)] == nil {
			s.add(r)
		}
		return nil
	}, &s.out.Damaged)
	if err != nil {
		return Sums{}, err
	}
	s.newer()
	return s.sums(), nil
}

// summer sums up the rows of one query.
type summer struct {
	q    Query
	own  map[string]*messages.UsageRow // the query's own, of its days
	rows map[string]*messages.UsageRow
	out  Sums
}

func newSummer(q Query) *summer {
	s := &summer{q: q, own: make(map[string]*messages.UsageRow), rows: make(map[string]*messages.UsageRow), out: Sums{Total: &messages.UsageRow{}}}
	for _, r := range q.Newer {
		if r.GetDay() >= q.From && r.GetDay() <= q.To {
			s.own[rowKey(r)] = r
		}
	}
	return s
}

func (s *summer) add(r *messages.UsageRow) {
	Sum(s.out.Total, r)
	head := only(r, s.q.By)
	key := rowKey(head)
	row := s.rows[key]
	if row == nil {
		if len(s.rows) >= MaxAnswer {
			s.out.Cut = true
			return
		}
		row = head
		s.rows[key] = row
	}
	Sum(row, r)
}

func (s *summer) newer() {
	for _, r := range s.own {
		s.add(r)
	}
}

func (s *summer) sums() Sums {
	if len(s.q.By) > 0 {
		s.out.Rows = sorted(s.rows)
	}
	return s.out
}

// only gives the names of a row that are asked for.
func only(r *messages.UsageRow, by []string) *messages.UsageRow {
	out := &messages.UsageRow{}
	for _, f := range by {
		switch f {
		case "day":
			out.Day = r.GetDay()
		case "source":
			out.Source = r.GetSource()
		case "model":
			out.Model = r.GetModel()
		case "agent":
			out.Agent = r.GetAgent()
		case "channel":
			out.Channel = r.GetChannel()
		case "conversation":
			// A conversation is one of its channel.
			out.Channel, out.Conversation = r.GetChannel(), r.GetConversation()
		}
	}
	return out
}

func sorted(sums map[string]*messages.UsageRow) []*messages.UsageRow {
	out := make([]*messages.UsageRow, 0, len(sums))
	for _, r := range sums {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *messages.UsageRow) int {
		return cmp.Or(
			cmp.Compare(a.GetDay(), b.GetDay()), cmp.Compare(a.GetSource(), b.GetSource()), cmp.Compare(a.GetModel(), b.GetModel()),
			cmp.Compare(a.GetAgent(), b.GetAgent()), cmp.Compare(a.GetChannel(), b.GetChannel()),
			cmp.Compare(a.GetConversation(), b.GetConversation()),
		)
	})
	return out
}

// Old returns the keys of at most limit rows of days before a day, for Drop.
func (e *Engine) Old(before string, limit int) ([]string, error) {
	var out []string
	err := e.db.View(func(txn store.Txn) error {
		for item, err := range txn.Scan(store.Range{
			Space: store.Usage, From: []byte(dayPrefix), To: []byte(dayPrefix + before), Limit: limit,
		}) {
			if err != nil {
				return fmt.Errorf("read usage: %w", err)
			}
			out = append(out, string(item.Key()))
		}
		return nil
	})
	return out, err
}

// Only sums up the rows that a query brings itself, for a node that stores none.
func Only(q Query) Sums {
	s := newSummer(q)
	s.newer()
	return s.sums()
}
