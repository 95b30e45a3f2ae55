package usage

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/proto"

	"homeagent/configs"
	"homeagent/messages"
)

const (
	// MaxRows is how many rows a day may have.
	MaxRows = 2000
	// Other is the conversation of what came after them.
	Other = "(other)"
)

// Book keeps the rows of the current day and the cost of the current month. It is a value machine: what it is told is
// all it knows. Not safe for concurrent use.
type Book struct {
	day   string
	rows  map[string]*messages.UsageRow // of the day, by key
	money map[string]int64              // cost of the days of the month, by day
}

// NewBook makes a book of a day from the rows of its month.
func NewBook(day string, month []*messages.UsageRow) *Book {
	b := &Book{day: day, rows: make(map[string]*messages.UsageRow), money: make(map[string]int64)}
	for _, r := range month {
		if Month(r.GetDay()) == Month(day) {
			b.money[r.GetDay()] += r.GetCostMicros()
		}
		if r.GetDay() == day {
			b.rows[rowKey(r)] = r
		}
	}
	return b
}

// Turn goes to a day, and reports whether that was another one.
func (b *Book) Turn(day string) bool {
	if day == b.day {
		return false
	}
	if Month(day) != Month(b.day) {
		clear(b.money)
	}
	b.day = day
	clear(b.rows)
	return true
}

// Call is one call of a model.
type Call struct {
	Source, Model, Agent, Channel, Conversation string
	Failed                                      bool
	// Tokens; may be nil.
	Tokens *messages.Usage
	Price  configs.Price
	// Free says that no price means no cost.
	Free bool
}

// Note counts a call on the day of the book. It returns the row as it is now, frozen; the caller stores it.
func (b *Book) Note(c Call) *messages.UsageRow {
	head := &messages.UsageRow{
		Day: b.day, Source: c.Source, Model: c.Model, Agent: c.Agent, Channel: c.Channel, Conversation: c.Conversation,
	}
	old := b.rows[rowKey(head)]
	if old == nil && len(b.rows) >= MaxRows {
		head.Channel, head.Conversation = "", Other
		old = b.rows[rowKey(head)]
	}
	row := head
	if old != nil {
		row = proto.CloneOf(old)
	}
	row.Calls++
	if c.Failed {
		row.Failed++
	}
	AddTokens(row, c.Tokens)
	if Used(c.Tokens) {
		cost, ok := Cost(c.Tokens, c.Price)
		if !ok && !c.Free {
			row.Unpriced++
		}
		row.CostMicros += cost
		b.money[b.day] += cost
	}
	b.rows[rowKey(row)] = row
	return row
}

// Today gives the rows of the day, which are frozen, in a stable order.
func (b *Book) Today() []*messages.UsageRow {
	out := make([]*messages.UsageRow, 0, len(b.rows))
	for _, r := range b.rows {
		out = append(out, r)
	}
	slices.SortFunc(out, func(x, y *messages.UsageRow) int { return cmp.Compare(rowKey(x), rowKey(y)) })
	return out
}

// Spent gives what the day and the month have cost, in millionths of the unit of money.
func (b *Book) Spent() (day, month int64) {
	for d, m := range b.money {
		month += m
		if d == b.day {
			day = m
		}
	}
	return day, month
}
