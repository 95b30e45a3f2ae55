package kernel

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/admin"
	"homeagent/actors/agent"
	"homeagent/actors/channels"
	"homeagent/actors/config"
	contextactor "homeagent/actors/context"
	"homeagent/actors/events"
	"homeagent/actors/graph"
	"homeagent/actors/guard"
	"homeagent/actors/kit"
	"homeagent/actors/ledger"
	"homeagent/actors/memory"
	"homeagent/actors/provider"
	"homeagent/actors/scheduler"
	"homeagent/actors/stages"
	"homeagent/actors/timers"
	"homeagent/actors/tools"
	"homeagent/actors/turn"
	"homeagent/configs"
	timerengine "homeagent/memory/timers"
	"homeagent/messages"
)

// core is the restart row of actors that the node cannot do without: a failure that does not go away goes up, and when
// nobody is left above to be restarted, it ends the node.
var core = kit.Restart{
	Intensity: 5, Period: time.Minute, Backoff: 50 * time.Millisecond, MaxBackoff: 5 * time.Second, Jitter: 0.2,
	Escalate: true, StopTimeout: 5 * time.Second,
}

// part is the restart row of actors that others can do without for a while.
var part = kit.Restart{
	Intensity: 10, Period: time.Minute, Backoff: 100 * time.Millisecond, MaxBackoff: 10 * time.Second, Jitter: 0.2,
	StopTimeout: 5 * time.Second,
}

// fatal is the row of the ledger: what it had not written when it failed is lost, and with it silent steps of turns that
// nobody asks for again. The process ends, and its next start goes on from what is on disk; a request that makes it fail
// each time ends with its task, at the third start.
var fatal = kit.Restart{Escalate: true, StopTimeout: 5 * time.Second}

// whole is the row of schedulers: turns that go on while their scheduler is away get ahead of the journals that the next
// one reads, so a failure restarts the whole agent, which ends its turns first.
var whole = kit.Restart{Escalate: true, StopTimeout: 5 * time.Second}

// once is the row of actors whose parent decides what a failure means: turns and calls.
var once = kit.Restart{StopTimeout: 5 * time.Second}

// Table returns the supervision table of a node. The caller owns the slice.
func Table() []Row {
	rows := []Row{
		{
			Kind: config.Kind, Paths: []string{"config"}, Provides: []kit.Facility{kit.FacilityConfig}, Restart: core, System: true,
			Make: func(w *world, _ string, _ proto.Message) (kit.Props, error) {
				return config.Props(config.Deps{Registry: w.registry, Changed: w.applySettings}), nil
			},
		},
		{
			Kind: ledger.Kind, Paths: []string{"ledger"}, Provides: []kit.Facility{kit.FacilityLedger}, Restart: fatal, System: true,
			Limits: kit.Limits{Soft: 16384, Hard: 65536},
			Make: func(w *world, _ string, _ proto.Message) (kit.Props, error) {
				return ledger.Props(ledger.Deps{Engine: w.ledger, Keeper: w.ledger}), nil
			},
		},
		{
			Kind: "events", Paths: []string{"events"}, Provides: []kit.Facility{kit.FacilityEvents}, Restart: core, System: true,
			Limits: kit.Limits{Soft: 16384, Hard: 65536},
			Make: func(w *world, _ string, _ proto.Message) (kit.Props, error) {
				return events.Props(events.Params{Ring: w.settings().Int(configs.KeyAdminEventRing)}), nil
			},
		},
	}
	rows = append(rows, guardRow())
	rows = append(rows, memoryRows()...)
	rows = append(rows, modelRows()...)
	rows = append(rows, turnRows()...)
	rows = append(rows, pluginRows()...)
	return append(rows, agentRows()...)
}

func guardRow() Row {
	return Row{
		Kind: guard.Kind, Paths: []string{"guard"}, Restart: core, System: true,
		Requires: []kit.Facility{kit.FacilityConfig, kit.FacilityLedger, kit.FacilityEvents}, Provides: []kit.Facility{kit.FacilityGuard},
		Make: func(w *world, _ string, _ proto.Message) (kit.Props, error) {
			return guard.Props(guard.Deps{Engine: w.approvals, Ledger: kit.Path("ledger")}), nil
		},
	}
}

func memoryRows() []Row {
	return []Row{
		{
			Kind: contextactor.Kind, Paths: []string{"memory/context"}, Requires: []kit.Facility{kit.FacilityLedger},
			Provides: []kit.Facility{kit.FacilityContext}, Restart: part, System: true,
			Make: func(w *world, _ string, _ proto.Message) (kit.Props, error) {
				return contextactor.Props(contextactor.Deps{Engine: w.events}), nil
			},
		},
		{
			Kind: graph.Kind, Paths: []string{"memory/graph"}, Provides: []kit.Facility{kit.FacilityGraph}, Restart: part, System: true,
			Make: func(w *world, _ string, _ proto.Message) (kit.Props, error) {
				return graph.Props(graph.Deps{Engine: w.graph, Store: w.db}), nil
			},
		},
		{
			Kind: memory.Kind, Paths: []string{"memory"}, Restart: part, System: true,
			Requires: []kit.Facility{kit.FacilityGraph, kit.FacilityTools}, Provides: []kit.Facility{kit.FacilityMemory},
			Make: func(w *world, _ string, _ proto.Message) (kit.Props, error) {
				return memory.Props(memory.Deps{
					Engine: w.recall, Words: w.words, Tools: kit.Path("tools"), Graph: kit.Path("memory/graph"),
				}), nil
			},
		},
	}
}

func modelRows() []Row {
	deps := func(w *world) provider.Deps {
		return provider.Deps{
			Client: w.client, Settings: w.settings, Book: w.book, Locals: w.opt.locals(),
			Payload: w.findMedia, Usage: w.usage, Ledger: kit.Path("ledger"), Tools: kit.Path("tools"),
		}
	}
	return []Row{
		{
			Kind: provider.Kind, Paths: []string{"providers"}, Restart: core, System: true,
			Requires: []kit.Facility{kit.FacilityConfig, kit.FacilityEvents, kit.FacilityLedger, kit.FacilityTools},
			Provides: []kit.Facility{kit.FacilityProviders},
			Make:     func(w *world, _ string, _ proto.Message) (kit.Props, error) { return provider.Props(deps(w)), nil },
		},
		{
			Kind: provider.SourceKind, Restart: part, System: true,
			Make: func(_ *world, _ string, params proto.Message) (kit.Props, error) { return provider.SourceProps(params) },
		},
		{
			Kind: provider.CallKind, Restart: once,
			Make: func(w *world, _ string, params proto.Message) (kit.Props, error) { return deps(w).CallProps(params) },
		},
	}
}

func turnRows() []Row {
	var stagePaths []string
	for _, s := range stages.All() {
		stagePaths = append(stagePaths, "stages/"+stages.Name(s))
	}
	return []Row{
		{
			Kind: stages.Kind, Paths: stagePaths, Provides: []kit.Facility{kit.FacilityStages}, Restart: core, System: true,
			Make: func(w *world, path string, _ proto.Message) (kit.Props, error) { return stageProps(w, path) },
		},
		{
			Kind: tools.Kind, Paths: []string{"tools"}, Requires: []kit.Facility{kit.FacilityConfig}, Provides: []kit.Facility{kit.FacilityTools}, Restart: core, System: true,
			Make: func(w *world, _ string, _ proto.Message) (kit.Props, error) {
				s := w.settings()
				return tools.Props(tools.Params{
					Timeout: s.Duration(configs.KeyAgentToolTimeout), Zone: s.Location(),
					Owners: []string{"agents", "channels", "memory", "timers"},
				}), nil
			},
		},
		{
			Kind: channels.Kind, Paths: []string{"channels"}, Restart: core, System: true,
			Requires: []kit.Facility{kit.FacilityLedger, kit.FacilityEvents, kit.FacilityConfig, kit.FacilityTools},
			Provides: []kit.Facility{kit.FacilityChannels},
			Make: func(w *world, _ string, _ proto.Message) (kit.Props, error) {
				return channels.Props(channels.Params{
					Ledger: kit.Path("ledger"), Tools: kit.Path("tools"), Limit: int64(w.settings().Int(configs.KeyAgentQueueLimit)),
					Awaited: []string{agent.ReportChannel, timers.Channel, "api", "cli", "web"},
				}), nil
			},
		},
		{
			Kind: turn.Kind, Restart: once,
			Make: func(w *world, _ string, params proto.Message) (kit.Props, error) {
				start, ok := params.(*messages.StartTurn)
				if !ok {
					return kit.Props{}, fmt.Errorf("a turn is made from a StartTurn, not from %T", params)
				}
				return turn.Props(turn.Deps{
					Ledger: kit.Path("ledger"), Memory: kit.Path("memory"), Context: kit.Path("memory/context"),
					Providers: kit.Path("providers"), Tools: kit.Path("tools"), Channels: kit.Path("channels"),
					Stages: "stages", Settings: w.turnSettings,
				}, start), nil
			},
		},
	}
}

// stageProps makes the pool of one stage with the handlers that ship with the node.
func stageProps(w *world, path string) (kit.Props, error) {
	for _, s := range stages.All() {
		if path != "stages/"+stages.Name(s) {
			continue
		}
		return stages.Props(s, w.handlers(s)), nil
	}
	return kit.Props{}, fmt.Errorf("no stage stands at %q", path)
}

// handlers are those of a stage. They are the same as long as the node runs.
func (w *world) handlers(s messages.Stage) []stages.Handler {
	if s == messages.Stage_STAGE_BEFORE_TOOLCALL {
		return []stages.Handler{stages.DenyTools(w.denied)}
	}
	return nil
}

// idleStages are the stages without handlers; turns need not ask them.
func (w *world) idleStages() map[messages.Stage]bool {
	idle := map[messages.Stage]bool{}
	for _, s := range stages.All() {
		idle[s] = len(w.handlers(s)) == 0
	}
	return idle
}

func agentRows() []Row {
	return []Row{
		{
			Kind: agent.RootKind, Paths: []string{"agents"}, Restart: core, System: true,
			Requires: []kit.Facility{
				kit.FacilityConfig,
				kit.FacilityLedger, kit.FacilityEvents, kit.FacilityChannels, kit.FacilityTools, kit.FacilityStages,
				kit.FacilityProviders, kit.FacilityMemory, kit.FacilityContext, kit.FacilityGuard,
			},
			Provides: []kit.Facility{kit.FacilityAgents},
			Make: func(_ *world, _ string, _ proto.Message) (kit.Props, error) {
				return agent.RootProps(agent.RootParams{Channels: kit.Path("channels"), Tools: kit.Path("tools")}), nil
			},
		},
		{
			Kind: agent.Kind, Restart: core, System: true,
			Make: func(_ *world, _ string, params proto.Message) (kit.Props, error) {
				spec, ok := params.(*messages.AgentSpec)
				if !ok {
					return kit.Props{}, fmt.Errorf("an agent is made from an AgentSpec, not from %T", params)
				}
				return agent.Props(agent.Params{Spec: spec, Ledger: kit.Path("ledger"), Channels: kit.Path("channels")}), nil
			},
		},
		{
			Kind: scheduler.Kind, Restart: whole, System: true,
			Limits: kit.Limits{Soft: 16384, Hard: 65536},
			Make: func(w *world, _ string, params proto.Message) (kit.Props, error) {
				spec, ok := params.(*messages.AgentSpec)
				if !ok {
					return kit.Props{}, fmt.Errorf("a scheduler is made from an AgentSpec, not from %T", params)
				}
				s := w.settings()
				return scheduler.Props(scheduler.Params{
					Agent: spec, Ledger: kit.Path("ledger"), AgentActor: kit.Path("agents/" + spec.GetAgent()),
					Cooldown: s.Duration(configs.KeySchedulerCooldown), DuplicateWindow: s.Duration(configs.KeyInputDuplicateWindow),
					TurnDeadline: s.Duration(configs.KeyAgentTurnDeadline), MaxRounds: int32(s.Int(configs.KeyAgentMaxToolTurns)),
				}), nil
			},
		},
		{
			// Residents are up when agents are, so that no slot is refused for want of its agent.
			Kind: timers.Kind, Paths: []string{"timers"}, Restart: core, System: true,
			Requires: []kit.Facility{
				kit.FacilityConfig, kit.FacilityLedger, kit.FacilityEvents, kit.FacilityChannels, kit.FacilityTools, kit.FacilityAgents,
			},
			Provides: []kit.Facility{kit.FacilityTimers},
			Make: func(w *world, _ string, _ proto.Message) (kit.Props, error) {
				return timers.Props(timers.Deps{Engine: timerengine.NewEngine(w.db), Params: w.timerParams}), nil
			},
		},
		{
			Kind: "admin", Paths: []string{"admin"}, Restart: core, System: true,
			Requires: []kit.Facility{kit.FacilityAgents, kit.FacilityChannels, kit.FacilityConfig, kit.FacilityEvents, kit.FacilityGuard},
			Provides: []kit.Facility{kit.FacilityAdmin},
			Make:     func(w *world, _ string, _ proto.Message) (kit.Props, error) { return w.adminProps(), nil },
		},
	}
}

func (w *world) timerParams() timers.Params {
	s := w.settings()
	return timers.Params{
		Ledger: kit.Path("ledger"), Channels: kit.Path("channels"), Tools: kit.Path("tools"), Zone: s.Location(),
		Max: int64(s.Int(configs.KeyTimersMax)), Shortest: s.Duration(configs.KeyTimersMinInterval),
		Grace: s.Duration(configs.KeyTimersGrace), Keep: s.Duration(configs.KeyTimersKeepDone),
	}
}

func (w *world) adminProps() kit.Props {
	s := w.settings()
	return admin.Props(admin.Deps{
		Runtime: w.rt, Door: w.door, Metrics: w.metrics, Build: w.build, Node: w.opt.Name, Data: w.layout.Data(), Started: w.started,
		Tokens: w.token, Decides: w.decides, Broken: w.db.Check, Backup: w.backup, Keep: w.keepMedia,
		Body: s.Size(configs.KeyAdminMaxBody), Heartbeat: s.Duration(configs.KeyAdminHeartbeat),
	})
}
