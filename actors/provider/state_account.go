package provider

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/memory/usage"
	"homeagent/messages"
	models "homeagent/providers"
)

const (
	// corrWritten asks ledger to answer once all of an earlier incarnation is written.
	corrWritten = "written"
	corrStore   = "store"
	// askAgain is how long after a refusal the same is asked again.
	askAgain = time.Second
	// saveAgain is how long after a failure all that is known is stored once more.
	saveAgain = 5 * time.Second
	// sweepEvery is how often usage that is too old is looked for; sweepRows are removed at a time.
	sweepEvery = 6 * time.Hour
	sweepRows  = 500
)

// subscribed are the settings that are read anew when they change.
var subscribed = []string{configs.LLMPrefix, configs.MediaPrefix, configs.KeyAgentTimezone, configs.KeyRetentionUsage}

// account is what was used, and what it may be.
type account struct {
	known    bool // what is stored was read
	zone     *time.Location
	book     *usage.Book
	currency string
	keep     time.Duration
	limits   [2]int64 // of the day and the month; zero means none
	warned   [2]warned
	ops      []*messages.LedgerOp
	sweeping bool
}

// warned is how far people were told of a budget.
type warned struct {
	period string
	level  int // 0, 80, 100
}

var periods = [2]string{"day", "month"}

// settings puts what was read in force.
func (m *machine) settings(l loaded) {
	a := &m.account
	a.zone, a.currency, a.keep = l.Zone, l.Currency, l.Keep
	a.limits = [2]int64{int64(l.BudgetDay * usage.Micros), int64(l.BudgetMonth * usage.Micros)}
	switch {
	case l.Stored != nil:
		a.known = true
		a.book = usage.NewBook(m.day(), l.Stored.Rows)
		m.restore(l.Stored)
		for i := range periods { // whoever was told before the restart is not told again
			a.warned[i] = warned{m.period(i), m.level(i)}
		}
		m.sweep()
	case a.book == nil:
		a.book = usage.NewBook(m.day(), nil)
	}
	m.warn()
}

func (m *machine) restore(s *usage.Loaded) {
	if len(s.Damaged) > 0 {
		m.add(kit.Log{Level: kit.Error, Text: "stored usage is damaged and not counted", Attrs: []any{"keys", strings.Join(s.Damaged, ",")}})
		m.notice("usage_damaged", Kind, fmt.Sprintf("%d records of usage are damaged; their figures are missing.", len(s.Damaged)))
	}
	for _, r := range s.Marks {
		marks := make([]models.Mark, 0, len(r.GetMarks()))
		for _, k := range r.GetMarks() {
			f := models.FailureOf(&messages.CompletionResult{Source: r.GetSource(), Failure: k.GetLast()})
			marks = append(marks, models.Mark{
				Key: k.GetKey(), Until: time.UnixMicro(k.GetUntilUs()), Latched: k.GetBroken(), Strikes: int(k.GetStrikes()), Last: f,
			})
		}
		m.router.Restore(r.GetSource(), r.GetPrint(), marks)
	}
}

// count notes a call that has ended; res is nil for one that was cancelled.
func (m *machine) count(r *request, res *messages.CompletionResult, failed bool) {
	a := &m.account
	a.book.Turn(m.day())
	c := r.complete
	row := a.book.Note(usage.Call{
		Source: r.source, Model: cmp.Or(res.GetModel(), r.asked.Spec.GetModel()), Agent: c.GetRequest().GetAgent(),
		Channel: c.GetChannel(), Conversation: c.GetConversation(), Failed: failed, Tokens: res.GetUsage(),
		Price: r.asked.Price, Free: r.asked.Route.Free,
	})
	m.op(usage.Put(row))
	m.warn()
}

func (m *machine) op(op *messages.LedgerOp, err error) {
	if err != nil {
		m.add(kit.Log{Level: kit.Error, Text: "usage cannot be written", Attrs: []any{"error", err.Error()}})
		return
	}
	m.account.ops = append(m.account.ops, op)
}

// store hands what has changed in this step to ledger, as one transaction.
func (m *machine) store() {
	if !m.account.known || m.p.Ledger == nil {
		return
	}
	for _, name := range m.router.Dirty() {
		m.mark(name)
	}
	if ops := m.account.ops; len(ops) > 0 {
		m.account.ops = nil
		m.add(kit.Send{To: m.p.Ledger, Corr: corrStore, Msg: &messages.LedgerExecute{Ops: ops, Silent: true}})
	}
}

// mark stores what is known of the failures of a source.
func (m *machine) mark(name string) {
	print, marks := m.router.Marks(name)
	if len(marks) == 0 {
		m.op(usage.DropMarks(name), nil)
		return
	}
	out := &messages.SourceMarks{Source: name, Print: print}
	for _, k := range marks {
		v := &messages.SourceMark{Key: k.Key, UntilUs: k.Until.UnixMicro(), Broken: k.Latched, Strikes: int32(k.Strikes)}
		if k.Last != nil {
			v.Last = k.Last.Proto()
		}
		out.Marks = append(out.Marks, v)
	}
	m.op(usage.PutMarks(out))
}

// unstored stores all that is known once more, later: rows and marks are written
// as a whole, so that one write too many changes nothing.
func (m *machine) unstored(err *messages.Error) {
	m.add(kit.Log{Level: kit.Warn, Text: "usage was not stored; it is tried again", Attrs: []any{"error", err.GetMessage()}},
		kit.After{Key: "store", D: saveAgain, Msg: restore{}})
}

func (m *machine) storeAll() {
	for _, row := range m.account.book.Today() {
		m.op(usage.Put(row))
	}
	for _, k := range m.sources {
		m.mark(k.Spec.GetName())
	}
}

// sweep removes what is too old; the current month stays, for its budget.
func (m *machine) sweep() {
	if m.account.sweeping || m.p.Ledger == nil {
		return
	}
	m.account.sweeping = true
	before := min(usage.Day(m.now.Add(-m.account.keep), m.account.zone), usage.Month(m.day()))
	m.add(sweep{Before: before, Limit: sweepRows})
}

func (m *machine) swept(s swept) {
	m.account.sweeping = false
	if s.Err != nil {
		m.add(kit.Log{Level: kit.Warn, Text: "old usage cannot be read", Attrs: []any{"error", s.Err.Error()}})
	}
	for _, key := range s.Keys {
		m.op(usage.Drop(key), nil)
	}
	d := sweepEvery
	if len(s.Keys) >= sweepRows {
		d = askAgain
	}
	m.add(kit.After{Key: "sweep", D: d, Msg: sweepNow{}})
}

// Budgets ----------------------------------------------------------------------

// period names the current one of a budget.
func (m *machine) period(i int) string {
	if i == 0 {
		return m.day()
	}
	return usage.Month(m.day())
}

// ends is when it ends.
func (m *machine) ends(i int) time.Time {
	at := m.now.In(m.account.zone)
	if i == 0 {
		return time.Date(at.Year(), at.Month(), at.Day()+1, 0, 0, 0, 0, m.account.zone)
	}
	return time.Date(at.Year(), at.Month()+1, 1, 0, 0, 0, 0, m.account.zone)
}

func (m *machine) money(i int) int64 {
	m.account.book.Turn(m.day())
	day, month := m.account.book.Spent()
	return [2]int64{day, month}[i]
}

// level is how much of a budget is spent: 0, 80 or 100 %.
func (m *machine) level(i int) int {
	limit := m.account.limits[i]
	switch spent := m.money(i); {
	case limit <= 0:
		return 0
	case spent >= limit:
		return 100
	case spent >= limit/5*4:
		return 80
	}
	return 0
}

// warn tells people once of each mark that a budget passes.
func (m *machine) warn() {
	for i, period := range periods {
		w := &m.account.warned[i]
		if now := m.period(i); w.period != now {
			*w = warned{period: now}
		}
		level := m.level(i)
		if level <= w.level {
			w.level = level // a budget that was raised warns again
			continue
		}
		w.level = level
		spent, limit := m.amount(m.money(i)), m.amount(m.account.limits[i])
		if level == 100 {
			m.notice("budget_spent", Kind, fmt.Sprintf("The budget of this %s is spent: %s of %s. Until the next one, work that no person waits for is done by sources that cost nothing, or waits.", period, spent, limit))
			continue
		}
		m.notice("budget_warning", Kind, fmt.Sprintf("80 %% of the budget of this %s is spent: %s of %s.", period, spent, limit))
	}
}

func (m *machine) amount(micros int64) string {
	return fmt.Sprintf("%.2f %s", float64(micros)/usage.Micros, m.account.currency)
}

// spent gives the budget that is spent and ends last; nil when none is.
func (m *machine) spent() *messages.Budget {
	var out *messages.Budget
	for i := range periods {
		if m.level(i) == 100 {
			out = m.budget(i)
		}
	}
	return out
}

func (m *machine) budget(i int) *messages.Budget {
	return &messages.Budget{Period: periods[i], LimitMicros: m.account.limits[i], SpentMicros: m.money(i), EndsUs: m.ends(i).UnixMicro()}
}

// overBudget is the result of work in the background that no free source can do.
func (m *machine) overBudget() *messages.CompletionResult {
	b := m.spent()
	res := failure("", messages.ErrorKind_ERROR_KIND_BUDGET, fmt.Sprintf("the budget of this %s is spent: %s of %s; no person waits for this",
		b.GetPeriod(), m.amount(b.GetSpentMicros()), m.amount(b.GetLimitMicros())), models.Hint(messages.ErrorKind_ERROR_KIND_BUDGET))
	res.Failure.Error.RetryAfterMs = time.UnixMicro(b.GetEndsUs()).Sub(m.now).Milliseconds()
	return res
}

// query asks the engine what was used.
func (m *machine) query(e kit.Event, q *messages.QueryUsage) {
	m.account.book.Turn(m.day())
	day := m.day()
	ask := usage.Query{From: cmp.Or(q.GetFrom(), usage.Month(day)+"-01"), To: cmp.Or(q.GetTo(), day), By: q.GetBy()}
	if err := ask.Check(); err != nil {
		m.add(e.Reply(&messages.Error{
			Code: "bad_query", Message: strings.TrimPrefix(err.Error(), "usage: "),
			Hint: "Name days as 2027-03-01, and fields among " + strings.Join(usage.Fields, ", ") + ".",
		}))
		return
	}
	ask.Newer = m.account.book.Today()
	answer := &messages.UsageAnswer{From: ask.From, To: ask.To, Currency: m.account.currency}
	for i := range periods {
		if m.account.limits[i] > 0 {
			answer.Budgets = append(answer.Budgets, m.budget(i))
		}
	}
	m.add(sum{Ask: asked(e), Query: ask, Answer: answer})
}

func (m *machine) summed(s summed) {
	if s.Err != nil {
		m.add(kit.Log{Level: kit.Error, Text: "usage cannot be read", Attrs: []any{"error", s.Err.Error()}},
			s.Why.Ask.reply(&messages.Error{Code: "store_broken", Message: "the usage cannot be read", Hint: "The log says more."}))
		return
	}
	a := s.Why.Answer
	m.add(s.Why.Ask.reply(&messages.UsageAnswer{
		Rows: s.Sums.Rows, Total: s.Sums.Total, Cut: s.Sums.Cut, From: a.GetFrom(), To: a.GetTo(),
		Currency: a.GetCurrency(), Budgets: a.GetBudgets(),
	}))
}
