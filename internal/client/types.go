package client

import (
	"homeagent/configs"
	"homeagent/messages/api"
)

// The structs of the HTTP interface; see messages/api for what they hold.
type (
	Refusal       = api.Error
	Submit        = api.Submit
	Submitted     = api.Submitted
	Task          = api.Task
	Usage         = api.Usage
	Block         = api.Block
	Stop          = api.Stop
	Stopped       = api.Stopped
	Event         = api.Event
	Actor         = api.Actor
	Scheduler     = api.Scheduler
	Work          = api.Work
	ChangeWaiting = api.ChangeWaiting
	Agent         = api.Agent
	Agents        = api.Agents
	CreateAgent   = api.CreateAgent
	Channel       = api.Channel
	Channels      = api.Channels
	Nodes         = api.Nodes
	Status        = api.Status
	Ledger        = api.Ledger
	Health        = api.Health
	Memory        = api.Memory
	MemoryEvent   = api.MemoryEvent
	MemoryWhy     = api.MemoryWhy
	Recalled      = api.Recalled
	Fact          = api.Fact
	Facts         = api.Facts
	FactsWritten  = api.FactsWritten
	Value         = api.Value
	Values        = api.Values
	ValuesSet     = api.ValuesSet
	Plugin        = api.Plugin
	Plugins       = api.Plugins
	Source        = api.Source
	SourceView    = api.SourceView
	Sources       = api.Sources
	AddSource     = api.AddSource
	Tested        = api.Tested
	Failure       = api.Failure
	ChatRequest   = api.ChatRequest
	ChatTurn      = api.ChatTurn
	ChatResponse  = api.ChatResponse
	Models        = api.Models
	ModelUsage    = api.ModelUsage
	UsageReport   = api.UsageReport
	UsageRow      = api.UsageRow
	MemoryFigures = api.MemoryFigures
	Timer         = api.Timer
	Timers        = api.Timers
	AddTimer      = api.AddTimer
)

// Names of event types.
const (
	EventRawInput     = api.EventRawInput
	EventOutput       = api.EventOutput
	EventToolCall     = api.EventToolCall
	EventContentDelta = api.EventContentDelta
	EventError        = api.EventError
	EventTask         = api.EventTask
	EventSystem       = api.EventSystem
)

// Plain is the text of a JSON scalar.
var Plain = api.Plain

// Level writes a level for Submit.
var Level = api.Level

// KeyVariable is the environment variable that holds the key of a model source.
func KeyVariable(source string) string {
	return configs.EnvName(configs.SourcePrefix + source + "." + configs.SourceAPIKey)
}
