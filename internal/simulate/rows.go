package main

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/agent"
	"homeagent/actors/channels"
	contextactor "homeagent/actors/context"
	guardactor "homeagent/actors/guard"
	"homeagent/actors/kit"
	"homeagent/actors/ledger"
	"homeagent/actors/scheduler"
	"homeagent/actors/stages"
	"homeagent/actors/timers"
	"homeagent/actors/tools"
	"homeagent/actors/turn"
	"homeagent/internal/simulate/host"
	"homeagent/messages"
)

// The restart rows of the kernel's table.
var (
	core  = kit.Restart{Intensity: 5, Period: time.Minute, Backoff: 50 * time.Millisecond, MaxBackoff: 5 * time.Second, Escalate: true}
	part  = kit.Restart{Intensity: 10, Period: time.Minute, Backoff: 100 * time.Millisecond, MaxBackoff: 10 * time.Second}
	fatal = kit.Restart{Escalate: true}
	whole = kit.Restart{Escalate: true}
	once  = kit.Restart{}
)

// row is an actor that stands at the top of the tree.
type row struct {
	path     string
	layer    int
	requires []kit.Facility
	provides kit.Facility
	props    func() kit.Props
}

func with(p kit.Props, r kit.Restart) kit.Props {
	p.Restart = r
	return p
}

func wide(p kit.Props) kit.Props {
	p.Limits = kit.Limits{Soft: 16384, Hard: 65536}
	return p
}

func stub(kind string, r kit.Restart, make func() kit.Machine) func() kit.Props {
	return func() kit.Props { return kit.Props{Kind: kind, New: make, Restart: r} }
}

// rows are the actors that the kernel starts, by layers, with those of package outside among them.
func (w *world) rows() []row {
	at := kit.Path
	out := []row{
		{path: "config", provides: kit.FacilityConfig, props: stub("config", core, func() kit.Machine {
			return &settings{values: w.values, asked: map[string]kit.Event{}, subs: map[string][]string{}}
		})},
		{path: "ledger", provides: kit.FacilityLedger, props: func() kit.Props {
			return with(wide(ledger.Props(ledger.Deps{Engine: w.disk})), fatal)
		}},
		{path: "providers", layer: 1, provides: kit.FacilityProviders, props: stub("providers", core, func() kit.Machine { return newVendor(w.outside) })},
		{path: "memory/context", layer: 1, provides: kit.FacilityContext, props: func() kit.Props {
			return with(contextactor.Props(contextactor.Deps{Engine: w.disk}), part)
		}},
		{path: "tools", layer: 1, requires: []kit.Facility{kit.FacilityConfig}, provides: kit.FacilityTools, props: func() kit.Props {
			return with(tools.Props(tools.Params{}), core)
		}},
		{
			path: "channels", layer: 1, requires: []kit.Facility{kit.FacilityLedger, kit.FacilityConfig}, provides: kit.FacilityChannels,
			props: func() kit.Props {
				return with(channels.Props(channels.Params{Ledger: at("ledger"), Tools: at("tools"), Limit: queueLimit}), core)
			},
		},
		{path: "guard", layer: 1, requires: []kit.Facility{kit.FacilityConfig, kit.FacilityLedger}, provides: kit.FacilityGuard, props: func() kit.Props {
			return with(guardactor.Props(guardactor.Deps{Engine: questions{w.disk}, Ledger: at("ledger")}), core)
		}},
		{path: "memory", layer: 2, provides: kit.FacilityMemory, props: stub("memory", part, func() kit.Machine { return recall{} })},
		{path: "acts", layer: 2, requires: []kit.Facility{kit.FacilityTools}, props: stub("acts", part, func() kit.Machine {
			return &acts{o: w.outside, tools: at("tools"), calls: map[string]*act{}}
		})},
		{
			path: "agents", layer: 3, requires: []kit.Facility{kit.FacilityChannels, kit.FacilityTools}, provides: kit.FacilityAgents,
			props: func() kit.Props {
				return with(agent.RootProps(agent.RootParams{Channels: at("channels"), Tools: at("tools")}), core)
			},
		},
		{
			path: "timers", layer: 4, requires: []kit.Facility{kit.FacilityConfig, kit.FacilityLedger, kit.FacilityChannels, kit.FacilityTools},
			provides: kit.FacilityTimers, props: func() kit.Props {
				return with(timers.Props(timers.Deps{Engine: slots{w.disk}, Params: func() timers.Params {
					return timers.Params{Ledger: at("ledger"), Channels: at("channels"), Tools: at("tools"), Shortest: time.Second}
				}}), core)
			},
		},
		{path: "desk", layer: 4, requires: []kit.Facility{kit.FacilityChannels}, props: stub("desk", part, func() kit.Machine {
			return &desk{o: w.outside, channels: at("channels"), waiting: map[string]*letter{}}
		})},
	}
	for _, s := range stages.All() {
		out = append(out, row{path: "stages/" + stages.Name(s), provides: kit.FacilityStages, props: func() kit.Props {
			return with(stages.Props(s, nil), core)
		}})
	}
	return out
}

// queueLimit is how many inputs may be accepted and not ended.
const queueLimit = 8

// kinds are the actors that others spawn.
func (w *world) kinds() map[string]host.Kind {
	spec := func(params proto.Message) (*messages.AgentSpec, error) {
		s, ok := params.(*messages.AgentSpec)
		if !ok {
			return nil, fmt.Errorf("not an AgentSpec: %T", params)
		}
		return s, nil
	}
	at := kit.Path
	return map[string]host.Kind{
		agent.Kind: func(params proto.Message) (kit.Props, error) {
			s, err := spec(params)
			return with(agent.Props(agent.Params{Spec: s, Ledger: at("ledger"), Channels: at("channels")}), core), err
		},
		scheduler.Kind: func(params proto.Message) (kit.Props, error) {
			s, err := spec(params)
			return with(wide(scheduler.Props(scheduler.Params{
				Agent: s, Ledger: at("ledger"), AgentActor: at("agents/" + s.GetAgent()), MaxRounds: w.plan.rounds,
			})), whole), err
		},
		turn.Kind: func(params proto.Message) (kit.Props, error) {
			start, ok := params.(*messages.StartTurn)
			if !ok {
				return kit.Props{}, fmt.Errorf("not a StartTurn: %T", params)
			}
			return with(turn.Props(turn.Deps{
				Ledger: at("ledger"), Memory: at("memory"), Context: at("memory/context"), Providers: at("providers"),
				Tools: at("tools"), Channels: at("channels"), Stages: "stages",
				Settings: func() turn.Settings { return turn.Settings{Silence: 20 * time.Second} },
			}, start), once), nil
		},
	}
}
