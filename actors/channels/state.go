package channels

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/messages"
)

// Params are what the actor is made with.
type Params struct {
	// Ledger is the ledger actor.
	Ledger *messages.Address
	// Tools is the registry of tools; nil offers none.
	Tools *messages.Address
	// Limit of inputs accepted and not ended; zero means 256.
	Limit int64
	// MaxText bounds the text of one input in bytes; zero means 384 KiB, which fits a record of the store.
	MaxText int
	// MaxParts bounds the blocks of one input; zero means 256.
	MaxParts int
	// SendTimeout for an output at a channel's owner; zero means 60 s.
	SendTimeout time.Duration
	// OfferTimeout for the outcome of an accepted input; zero means 5 s.
	OfferTimeout time.Duration
	// Awaited are the channels that a node always has. After a start the tools are not registered before those are there,
	// for 10 s at most: calls that name a channel would fail.
	Awaited []string
}

const (
	mainAgent = "main"
	// maxUnderway is how many inputs may be on their way in at a time.
	maxUnderway = 4096
)

var channelName = regexp.MustCompile(`^[a-z0-9][a-z0-9:_-]{0,63}$`)

// submission is an input on its way in.
type submission struct {
	ask      kit.Event
	input    *messages.Input
	accepted bool
	warning  string
	stopped  bool // a stop came while it is on its way in
}

// sending is an output at a channel's owner.
type sending struct {
	ask    kit.Event
	output *messages.OutputIntent
	resend bool
	call   *toolCall // of a send in mid-turn
}

type state struct {
	p        Params
	values   kit.Values
	channels map[string]*messages.RegisterChannel
	subs     map[string]*submission
	sends    map[string]*sending
	absent   map[string]*absent
	again    bool                       // an earlier incarnation may have accepted inputs and not offered them
	orphaned map[string]*messages.Input // for agents that are not there; their end is being written
	stops    map[string]kit.Event       // who waits for the answer to a stop
	seq      uint64
	unsent   []*messages.OutputIntent
	counts   struct{ Accepted, Refused, Sent, Failed uint64 }
	awaiting bool      // the tools are not registered yet
	settled  time.Time // until then channels may be missing that only have not registered yet
	now      time.Time
	out      []kit.Effect
	tool     sends
}

// New makes the machine of one incarnation.
func New(p Params) kit.Machine {
	if p.Limit == 0 {
		p.Limit = 256
	}
	if p.MaxText == 0 {
		p.MaxText = 384 << 10
	}
	if p.MaxParts == 0 {
		p.MaxParts = 256
	}
	if p.SendTimeout == 0 {
		p.SendTimeout = time.Minute
	}
	if p.OfferTimeout == 0 {
		p.OfferTimeout = 5 * time.Second
	}
	return &state{
		p: p, channels: map[string]*messages.RegisterChannel{}, subs: map[string]*submission{},
		sends: map[string]*sending{}, absent: map[string]*absent{}, orphaned: map[string]*messages.Input{}, stops: map[string]kit.Event{}, tool: newSends(),
	}
}

type (
	offerLate  struct{ id string }
	sendLate   struct{ id string }
	absentLate struct{ id string }
)

// Step implements kit.Machine.
func (s *state) Step(now time.Time, e kit.Event) []kit.Effect {
	s.now, s.out = now, nil
	if s.onTool(e) {
		s.add(s.shown())
		return s.out
	}
	switch m := e.Msg.(type) {
	case kit.Started, kit.Restarted:
		s.add(s.values.Subscribe(configs.KeyAgentQueueLimit, configs.KeyToolsSends))
		first, ok := m.(kit.Started)
		if !ok {
			s.registerTools()
			break
		}
		s.awaitChannels()
		s.again, s.settled = first.Restarts > 0, now.Add(channelWait)
		s.add(kit.Send{To: s.p.Ledger, Corr: "unsent", Msg: &messages.LedgerPending{}}, kit.Ready{})
	case *messages.RegisterChannel:
		s.onRegister(e, m)
	case *messages.ListChannels:
		s.add(e.Reply(s.list()))
	case *messages.SubmitInput:
		s.onSubmit(e, m)
	case *messages.StopAll:
		s.onStop(e, m)
	case *messages.StopResult:
		s.onStopped(e.Corr, m)
	case *messages.LedgerDone:
		s.onLedgerDone(e, m)
	case *messages.InputOutcome:
		s.onOutcome(e, m)
	case offerLate:
		s.onOfferLate(m.id)
	case *messages.SendOutput:
		s.onSend(e, m)
	case *messages.OutputSent:
		s.onSent(e.Corr, m)
	case sendLate:
		s.onSent("out/"+m.id, &messages.OutputSent{Error: &messages.Error{
			Code: "send_timeout", Message: "The channel did not confirm the output in time.",
		}})
	case absentLate:
		s.onAbsentLate(m.id)
	case *messages.ConfigChanged:
		s.values.Take(m)
		s.p.Limit = s.values.Int(configs.KeyAgentQueueLimit, s.p.Limit)
	case *messages.PendingTasks:
		s.onUnsent(m)
	case *messages.Error, *messages.Busy:
		s.onRefused(e)
	case *messages.Drain:
		s.add(e.Reply(&messages.Ok{}))
	case kit.Fault:
		s.onFault(m)
	}
	s.add(s.shown())
	return s.out
}

func (s *state) shown() kit.State {
	return kit.State{Word: "running", Summary: fmt.Sprintf("%d channels, %d inputs under way, %d outputs under way", len(s.channels), len(s.subs), len(s.sends)+len(s.absent))}
}

func (s *state) add(e ...kit.Effect) { s.out = append(s.out, e...) }

func (s *state) onRegister(e kit.Event, m *messages.RegisterChannel) {
	if !channelName.MatchString(m.GetName()) {
		s.add(e.Reply(&messages.Error{
			Code: "bad_name", Message: fmt.Sprintf("%q is no channel name.", m.GetName()),
			Hint: "Use lower-case letters, digits, hyphen, colon and underscore; at most 64.",
		}))
		return
	}
	s.channels[m.GetName()] = m
	s.add(e.Reply(&messages.Ok{}))
	s.deliverAbsent(m.GetName())
	s.sendCome(m.GetName())
	s.channelsCame()
	s.retryUnsent(m.GetName())
}

func (s *state) list() *messages.ChannelList {
	l := &messages.ChannelList{}
	for _, n := range slices.Sorted(maps.Keys(s.channels)) {
		l.Channels = append(l.Channels, s.channels[n])
	}
	return l
}

func (s *state) unknownChannel(name string) *messages.Error {
	return &messages.Error{
		Code: "unknown_channel", Message: fmt.Sprintf("There is no channel %q.", name),
		Hint:    "Known channels: " + strings.Join(slices.Sorted(maps.Keys(s.channels)), ", ") + ".",
		Details: map[string]string{"channel": name},
	}
}

// Show implements kit.Shower.
func (s *state) Show() any {
	return map[string]any{
		"channels": slices.Sorted(maps.Keys(s.channels)), "inputs_under_way": len(s.subs), "outputs_under_way": len(s.sends) + len(s.absent),
		"unsent": len(s.unsent), "accepted": s.counts.Accepted, "refused": s.counts.Refused, "sent": s.counts.Sent, "failed": s.counts.Failed,
	}
}
