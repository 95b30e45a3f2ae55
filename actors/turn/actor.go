package turn

import (
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// Kind of turns in the kernel's table.
const Kind = "turn"

// Deps is whom a turn talks to.
type Deps struct {
	// Ledger, Memory, Context, Providers, Tools and Channels are the well-known actors of the node.
	Ledger    *messages.Address
	Memory    *messages.Address
	Context   *messages.Address
	Providers *messages.Address
	Tools     *messages.Address
	Channels  *messages.Address
	// Guard is asked about each tool call; nil means the actor at "guard".
	Guard *messages.Address
	// Stages is the path below which each stage has its actor, such as "stages".
	Stages string
	// Settings is asked once for each turn, at its start; nil means all defaults.
	Settings func() Settings
}

// Settings of a turn; a zero field means its default.
type Settings struct {
	// Persona heads the system prompt; empty means a plain line that names no one.
	Persona string
	// Rounds is used when StartTurn names none; default 25.
	Rounds int
	// PromptTokens is what a prompt is kept to, by estimate; default 25,600.
	PromptTokens int
	// Window is what the model can read, in tokens; a prompt that cannot be kept to less is not sent. Default: a quarter
	// more than PromptTokens.
	Window int
	// History is the most past events of a prompt; default 60.
	History int
	// Recalled is the most recalled items of a prompt; default 12, negative means that nothing is recalled by itself.
	Recalled int
	// MaxTokens of an answer; zero leaves it to the source.
	MaxTokens int
	// Idle names the stages that have no handlers and get none while the turn runs.
	Idle map[messages.Stage]bool
	// Zone in which times are told to the model; default UTC.
	Zone *time.Location
	// Ask is how long an actor of this node may take to answer; default 30 s. Stages get StageAsk, default 5 min: their
	// handlers have deadlines of their own.
	Ask      time.Duration
	StageAsk time.Duration
	// Silence is how long a completion may send nothing; default 5 min.
	Silence time.Duration
	// Call is the time of a tool call whose definition names none; default 60 s.
	Call time.Duration
}

const (
	defaultRounds  = 25
	defaultPrompt  = 25_600
	defaultHistory = 60
	defaultRecall  = 12
)

func (s Settings) withDefaults() Settings {
	s.Rounds = orInt(s.Rounds, defaultRounds)
	s.PromptTokens = orInt(s.PromptTokens, defaultPrompt)
	s.Window = orInt(s.Window, s.PromptTokens+s.PromptTokens/4)
	s.History = orInt(s.History, defaultHistory)
	if s.Recalled == 0 {
		s.Recalled = defaultRecall
	}
	s.Ask = orTime(s.Ask, 30*time.Second)
	s.StageAsk = orTime(s.StageAsk, 5*time.Minute)
	s.Silence = orTime(s.Silence, 5*time.Minute)
	s.Call = orTime(s.Call, time.Minute)
	if s.Zone == nil {
		s.Zone = time.UTC
	}
	return s
}

func orInt(v, def int) int {
	if v <= 0 {
		return def
	}
	return v
}

func orTime(v, def time.Duration) time.Duration {
	if v <= 0 {
		return def
	}
	return v
}

// Props makes the turn of one StartTurn. It is not restarted in place: its journal would be stale.
func Props(deps Deps, start *messages.StartTurn) kit.Props {
	return kit.Props{
		Kind: Kind,
		New: func() kit.Machine {
			var s Settings
			if deps.Settings != nil {
				s = deps.Settings()
			}
			return New(deps, s, start)
		},
	}
}
