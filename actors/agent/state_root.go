package agent

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// RootParams are what the root of the agents is made with.
type RootParams struct {
	Channels, Tools *messages.Address
}

const (
	// ReportChannel is the channel over which residents report to their parents.
	ReportChannel = "agents"
	mainAgent     = "main"
	corrDrain     = "drain"
)

// relay is a request passed on to an agent.
type relay struct {
	ask kit.Event
	msg proto.Message
}

type root struct {
	p      RootParams
	self   *messages.Address
	relays map[string]*relay
	next   uint64
	ready  bool
	// draining: the node stops, so that the main agent ends before this actor; drain asks for it.
	draining bool
	drain    kit.Event
	out      []kit.Effect
}

// NewRoot makes the machine of one incarnation.
func NewRoot(p RootParams) kit.Machine { return &root{p: p, relays: map[string]*relay{}} }

type askMain struct{}

// Step implements kit.Machine.
func (r *root) Step(_ time.Time, e kit.Event) []kit.Effect {
	r.out = nil
	switch m := e.Msg.(type) {
	case kit.Started:
		r.self = m.Self
		r.register()
		r.onStarted()
	case kit.Restarted:
		r.register()
	case askMain:
		r.add(kit.Send{To: kit.Path("agents/main"), Corr: "up", Msg: &messages.ListAgents{}})
	case *messages.AgentList:
		r.onUp(m)
	case *messages.CallTool:
		r.pass(e, m.GetAgent(), m)
	case *messages.SendOutput:
		r.pass(e, m.GetOutput().GetAgent(), m)
	case *messages.ToolResult:
		r.back(e.Corr, m)
	case *messages.OutputSent:
		r.back(e.Corr, m)
	case *messages.Busy:
		r.failed(e.Corr, &messages.Error{Code: "busy", Message: "The agent has too much to do.", Hint: "Try again later."})
	case *messages.Error:
		r.onError(e.Corr, m)
	case kit.Fault:
		r.onFault(m)
	case *messages.Drain:
		r.draining, r.drain = true, e
		r.add(kit.Send{To: kit.Path("agents/main"), Corr: corrDrain, Msg: m})
	case *messages.Ok:
		if e.Corr == corrDrain {
			r.add(r.drain.Reply(m))
		}
	case kit.Ended:
		if !r.draining {
			r.add(kit.Log{Level: kit.Error, Text: "the main agent has ended", Attrs: []any{"failure", m.Failure}})
		}
	}
	return r.out
}

func (r *root) add(e ...kit.Effect) { r.out = append(r.out, e...) }

// register announces the report channel and the tools; it is done again when channels or tools were restarted.
func (r *root) register() {
	r.add(
		kit.Send{To: r.p.Channels, Corr: "channel", Msg: &messages.RegisterChannel{
			Name: ReportChannel, Kind: messages.ChannelKind_CHANNEL_KIND_ASYNC, Owner: r.self, Idempotent: true,
			Mode: messages.Mode_MODE_QUEUE,
		}},
		kit.Send{To: r.p.Tools, Corr: "tools", Msg: &messages.RegisterTools{Owner: r.self, Tools: toolDefs()}},
	)
}

func (r *root) onStarted() {
	r.add(
		kit.Spawn{Kind: Kind, Name: mainAgent, Params: &messages.AgentSpec{Agent: mainAgent}, Watch: true},
		kit.Send{To: kit.Path("agents/main"), Corr: "up", Msg: &messages.ListAgents{}},
	)
}

func (r *root) onUp(m *messages.AgentList) {
	if !r.ready {
		r.ready = true
		r.add(kit.Ready{})
	}
	r.add(kit.State{Word: "running", Summary: fmt.Sprintf("%d agents", len(m.GetAgents()))})
}

// pass hands a request to the agent it is about.
func (r *root) pass(e kit.Event, path string, m proto.Message) {
	if path == "" {
		path = mainAgent
	}
	r.next++
	corr := fmt.Sprintf("relay/%d", r.next)
	r.relays[corr] = &relay{ask: e, msg: m}
	r.add(kit.Send{To: kit.Path("agents/" + path), Corr: corr, Msg: m})
}

func (r *root) back(corr string, m proto.Message) {
	if w := r.relays[corr]; w != nil {
		delete(r.relays, corr)
		r.add(w.ask.Reply(m))
	}
}

func (r *root) onError(corr string, err *messages.Error) {
	switch {
	case corr == corrDrain: // it is gone already
		r.add(r.drain.Reply(&messages.Ok{}))
	case corr == "up":
		r.add(kit.After{Key: "up", D: 100 * time.Millisecond, Msg: askMain{}})
	case strings.HasPrefix(corr, "relay/"):
		r.failed(corr, err)
	default:
		r.add(kit.Log{Level: kit.Error, Text: "a registration was refused", Attrs: []any{"what", corr, "code", err.GetCode()}})
	}
}

func (r *root) onFault(f kit.Fault) {
	if send, ok := f.Effect.(kit.Send); ok {
		r.onError(send.Corr, f.Err)
	}
}

// failed answers a request that its agent did not take, in the words of the request.
func (r *root) failed(corr string, err *messages.Error) {
	w := r.relays[corr]
	if w == nil {
		return
	}
	switch m := w.msg.(type) {
	case *messages.CallTool:
		r.back(corr, toolFailure(m.GetCall(), "failed", err.GetMessage(), err.GetHint()))
	case *messages.SendOutput:
		r.back(corr, &messages.OutputSent{Receipt: &messages.OutputReceipt{OutputId: m.GetOutput().GetOutputId()}, Error: err})
	}
}
