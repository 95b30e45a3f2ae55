package timers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/configs"
	engine "homeagent/memory/timers"
	"homeagent/messages"
)

// Params of a machine.
type Params struct {
	// Ledger, Channels and Tools are the actors it asks.
	Ledger, Channels, Tools *messages.Address
	// Zone of the node; nil means UTC.
	Zone *time.Location
	// Max is the most timers; zero means 1000.
	Max int64
	// Shortest is the shortest interval; zero means a minute.
	Shortest time.Duration
	// Grace is how late a slot may run without being missed; zero means a minute.
	Grace time.Duration
	// Keep is how long a timer stays after its last slot; zero means 7 days.
	Keep time.Duration
}

const (
	// Channel is where the answers of timers go that name none.
	Channel = "timers"
	// look is how often the wall clock is looked at whatever is due.
	look = time.Minute
	// maxRuns is how many slots are under way at a time.
	maxRuns = 64
	// answerIn is how long ledger and channels may take to answer.
	answerIn = 30 * time.Second
	// askAgain is how long after a refusal the same is asked again.
	askAgain = time.Second
	// tryFor is how long a slot is handed over again and again before it is refused.
	tryFor = 10 * time.Minute
)

// timer is one timer; record is frozen and replaced as a whole.
type timer struct {
	record *messages.TimerRecord
	// schedule is nil when it cannot be read, as when its zone is gone.
	schedule *engine.Schedule
	run      *run
}

func (t *timer) get() *messages.Timer { return t.record.GetTimer() }

type state struct {
	p        Params
	self     *messages.Address
	values   kit.Values
	now      time.Time
	loaded   bool
	draining bool
	early    []kit.Event
	timers   map[string]*timer
	sorted   []string // their ids; nil when timers came or went since
	waits    map[string]*wait
	last     uint64
	runs     int
	armed    time.Time
	swept    time.Time
	counts   struct{ Ran, Skipped, Refused uint64 }
	damaged  []string
	out      []kit.Effect
}

// New makes the machine of one incarnation.
func New(p Params) kit.Machine {
	if p.Zone == nil {
		p.Zone = time.UTC
	}
	p.Max = cmp.Or(p.Max, 1000)
	p.Shortest, p.Grace, p.Keep = cmp.Or(p.Shortest, time.Minute), cmp.Or(p.Grace, time.Minute), cmp.Or(p.Keep, 7*24*time.Hour)
	return &state{p: p, timers: map[string]*timer{}, waits: map[string]*wait{}}
}

// Step implements kit.Machine.
func (s *state) Step(now time.Time, e kit.Event) []kit.Effect {
	s.now, s.out = now, nil
	switch m := e.Msg.(type) {
	case kit.Started:
		s.self = m.Self
		s.register()
		s.add(load{})
	case kit.Restarted:
		s.register()
	case loaded:
		s.onLoaded(m)
	case *messages.ConfigChanged:
		s.onConfig(m)
	case *messages.PutTimer, *messages.DeleteTimer, *messages.PauseTimer, *messages.RunTimer, *messages.ListTimers, *messages.CallTool:
		s.onRequest(e)
	case wake:
		s.armed = time.Time{}
		s.sweep()
	case again:
		s.onAgain(m.Corr)
	case late:
		s.answered(m.Corr, &messages.Error{Code: "timeout", Message: "The node did not answer in time.", Hint: "Try again."})
	case *messages.LedgerDone:
		s.answered(e.Corr, m)
	case *messages.TaskStatus:
		s.answered(e.Corr, m)
	case *messages.SubmitResult:
		s.answered(e.Corr, m)
	case *messages.ChannelList:
		s.answered(e.Corr, m)
	case *messages.Error:
		s.onError(e.Corr, m)
	case *messages.Busy:
		s.onError(e.Corr, busy())
	case kit.Fault:
		if send, ok := m.Effect.(kit.Send); ok {
			s.onError(send.Corr, m.Err)
		}
	case *messages.Drain:
		s.draining = true
		s.add(e.Reply(&messages.Ok{}))
	}
	s.check()
	s.arm()
	return s.out
}

func busy() *messages.Error {
	return &messages.Error{Code: "busy", Message: "The node has too much to do.", Hint: "Try again in a moment.", RetryAfterMs: 1000}
}

func (s *state) add(e ...kit.Effect) { s.out = append(s.out, e...) }

const (
	corrTools   = "register/tools"
	corrChannel = "register/channel"
)

// register announces tools and channel, and asks for the settings; again when one of those was restarted.
func (s *state) register() {
	s.add(s.values.Subscribe(configs.KeyTimersPrefix, configs.KeyAgentTimezone))
	s.registerTools()
	s.registerChannel()
}

func (s *state) registerTools() {
	s.add(kit.Send{To: s.p.Tools, Corr: corrTools, Msg: &messages.RegisterTools{Owner: s.self, Tools: toolDefs()}})
}

func (s *state) registerChannel() {
	s.add(kit.Send{To: s.p.Channels, Corr: corrChannel, Msg: &messages.RegisterChannel{
		Name: Channel, Kind: messages.ChannelKind_CHANNEL_KIND_ASYNC, Mode: messages.Mode_MODE_QUEUE,
	}})
}

// onLoaded takes in what is stored. A timer whose next slot is none under the zone of today gets the one that is: its
// zone, or the rules of its zone, changed while the node was down.
func (s *state) onLoaded(m loaded) {
	if m.Err != nil {
		s.add(kit.Log{Level: kit.Error, Text: "timers cannot be read", Attrs: []any{"error", m.Err.Error()}},
			kit.After{Key: "load", D: askAgain, Msg: again{Corr: "load"}})
		return
	}
	for _, r := range m.Records {
		t := &timer{record: r}
		s.insert(r.GetTimer().GetTimerId(), t)
		s.plan(t)
		if next := t.get().GetNextUs(); next != 0 && t.schedule != nil && t.get().GetKind() == messages.TimerKind_TIMER_KIND_CRON {
			if slot, ok := t.schedule.Next(time.UnixMicro(next - 1)); !ok || slot.UnixMicro() != next {
				s.replan(t, max(t.get().GetLastUs(), t.get().GetCreatedUs()))
			}
		}
		if r.GetPendingUs() != 0 {
			s.verify(t)
		}
	}
	s.damaged = m.Damaged
	if len(m.Damaged) > 0 {
		s.add(kit.Log{Level: kit.Error, Text: "stored timers are damaged and will not run", Attrs: []any{"timers", strings.Join(m.Damaged, ",")}},
			s.notice("timer_damaged", strconv.Itoa(len(m.Damaged))+" stored timers are damaged and will not run."))
	}
	s.loaded = true
	s.add(kit.Ready{})
	early := s.early
	s.early = nil
	for _, e := range early {
		s.onRequest(e)
	}
	s.show()
}

// plan reads the schedule of a timer anew.
func (s *state) plan(t *timer) {
	var err error
	if t.schedule, err = engine.NewSchedule(t.get(), s.p.Zone); err != nil {
		t.schedule = nil
		s.add(kit.Log{Level: kit.Error, Text: "a timer cannot be read and will not run", Attrs: []any{"timer", t.get().GetTimerId(), "error", err.Error()}})
	}
}

// replan sets the next slot to the first one after a time. It needs no write: the next start finds the same.
func (s *state) replan(t *timer, after int64) {
	r := proto.CloneOf(t.record)
	r.Timer.NextUs = nextAfter(t.schedule, after)
	t.record = r
}

func nextAfter(sch *engine.Schedule, us int64) int64 {
	if next, ok := sch.Next(time.UnixMicro(us)); ok {
		return next.UnixMicro()
	}
	return 0
}

// onConfig puts settings in force. In another zone the slots to come of a cron timer that names none are others.
func (s *state) onConfig(m *messages.ConfigChanged) {
	s.values.Take(m)
	s.p.Max = s.values.Int(configs.KeyTimersMax, s.p.Max)
	s.p.Shortest = s.values.Duration(configs.KeyTimersMinInterval, s.p.Shortest)
	s.p.Grace = s.values.Duration(configs.KeyTimersGrace, s.p.Grace)
	s.p.Keep = s.values.Duration(configs.KeyTimersKeepDone, s.p.Keep)
	zone := s.zoneOf(m)
	if zone.String() == s.p.Zone.String() {
		return
	}
	s.p.Zone = zone
	for _, id := range s.ids() {
		t := s.timers[id]
		if t.get().GetZone() != "" || t.schedule == nil {
			continue
		}
		s.plan(t)
		if next := t.get().GetNextUs(); t.get().GetKind() == messages.TimerKind_TIMER_KIND_CRON && next > s.now.UnixMicro() {
			s.replan(t, max(t.get().GetLastUs(), s.now.UnixMicro()))
		}
	}
}

// zoneOf is the zone of the node after a change of settings.
func (s *state) zoneOf(m *messages.ConfigChanged) *time.Location {
	for _, v := range m.GetValues() {
		if v.GetKey() != configs.KeyAgentTimezone {
			continue
		}
		if v.GetValue() == "" {
			return time.Local // unset means the zone of the machine
		}
		if zone, err := engine.Zone(v.GetValue()); err == nil { // config lets no other pass
			return zone
		}
	}
	return s.p.Zone
}

// ids of all timers in order.
func (s *state) ids() []string {
	if s.sorted == nil {
		s.sorted = slices.Sorted(maps.Keys(s.timers))
	}
	return s.sorted
}

func (s *state) insert(id string, t *timer) { s.timers[id], s.sorted = t, nil }

func (s *state) remove(id string) {
	delete(s.timers, id)
	s.sorted = nil
}

// onError handles an error in place of an answer.
func (s *state) onError(corr string, err *messages.Error) {
	if corr == corrTools || corr == corrChannel {
		s.add(kit.After{Key: corr, D: askAgain, Msg: again{Corr: corr}})
		return
	}
	s.answered(corr, err)
}

func (s *state) onAgain(corr string) {
	switch corr {
	case "load":
		s.add(load{})
	case corrTools:
		s.registerTools()
	case corrChannel:
		s.registerChannel()
	default:
		if t := s.timers[corr]; t != nil && t.run != nil {
			s.advance(t)
		}
	}
}

// arm has the wall clock looked at when the nearest slot comes, and once a minute in any case.
func (s *state) arm() {
	if !s.loaded || s.draining {
		return
	}
	to := s.now.Add(look)
	if !s.armed.IsZero() && s.armed.After(s.now) {
		to = s.armed
	}
	for _, t := range s.timers {
		if next := t.get().GetNextUs(); t.waiting() {
			if at := time.UnixMicro(next); at.Before(to) {
				to = at
			}
		}
	}
	if to.Equal(s.armed) {
		return
	}
	s.armed = to
	s.add(kit.After{Key: "wake", D: max(to.Sub(s.now.Round(0)), time.Millisecond), Msg: wake{}})
}

// waiting tells that a timer waits for a slot.
func (t *timer) waiting() bool {
	return t.get().GetNextUs() != 0 && !t.get().GetPaused() && t.schedule != nil && t.run == nil
}

// sweep drops timers that have no slot left, some time after the last one.
func (s *state) sweep() {
	if s.now.Sub(s.swept) < time.Hour && s.now.After(s.swept) {
		return
	}
	s.swept = s.now
	for _, id := range s.ids() {
		t := s.timers[id]
		if t.get().GetNextUs() != 0 || t.run != nil {
			continue
		}
		done := max(t.record.GetTakenUs(), t.get().GetLastUs(), t.get().GetCreatedUs())
		if s.now.UnixMicro()-done > s.p.Keep.Microseconds() {
			s.remove(id)
			s.add(kit.Send{To: s.p.Ledger, Msg: &messages.LedgerExecute{Silent: true, Ops: []*messages.LedgerOp{engine.Delete(id)}}})
		}
	}
	s.show()
}

func (s *state) show() {
	s.add(kit.State{Word: "running", Summary: fmt.Sprintf("%d timers, %d slots ran, %d skipped, %d refused", len(s.timers), s.counts.Ran, s.counts.Skipped, s.counts.Refused)})
}

// notice tells people a fact about the node.
func (s *state) notice(code, text string) kit.Publish {
	return kit.Publish{Event: &messages.AgentEvent{
		Type: messages.EventType_EVENT_TYPE_SYSTEM, Text: text,
		Detail: &messages.AgentEvent_System{System: &messages.SystemNotice{Code: code, Path: "timers"}},
	}}
}

// Show implements kit.Shower.
func (s *state) Show() any {
	next := ""
	if l := s.list(""); len(l) > 0 && l[0].GetNextUs() != 0 {
		next = time.UnixMicro(l[0].GetNextUs()).UTC().Format(time.RFC3339)
	}
	return map[string]any{
		"timers": len(s.timers), "under_way": s.runs, "zone": s.p.Zone.String(), "next": next, "ran": s.counts.Ran,
		"skipped": s.counts.Skipped, "refused": s.counts.Refused, "damaged": s.damaged,
	}
}
