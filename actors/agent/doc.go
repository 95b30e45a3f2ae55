// Package agent holds the agents of a node: the root of them, the main agent and its residents.
//
// Who they are: agents (kind "agents") spawns the main agent, owns the channel "agents" over which residents report, and
// routes the tools of this package to the agent that is meant. An agent (kind "agent", at agents/main or
// agents/main/resident/<name>) is the parent of its scheduler, its turns and its residents; a resident has the same shape
// as the main agent, but no residents of its own.
//
// Messages in, agent:
//
//	SpawnTurn    -> TurnSpawned: starts a turn for its scheduler; an older turn of the same task is ended first
//	ListAgents   -> AgentList: itself and its residents, once all of them are up
//	CreateAgent  -> AgentView or Error: keeps the resident in ledger, starts it, gives it its first task
//	DestroyAgent -> AgentView or Error: ends the resident; what waits becomes the parent's in one transaction, or is dropped
//	CallTool     -> ToolResult: resident_agents of the main agent; notify_parent and agent_note of a resident
//	SendOutput   -> OutputSent: a resident's answer becomes a report, an input of its parent
//	StopAll      -> StopResult: from its scheduler; passed on to the schedulers of its residents. What a turn that was
//	             running then still reports reaches nobody
//	Ended        of a turn: TurnLost to the scheduler, which knows whether the turn had finished
//	Drain        -> Ok, once the residents have answered too: from then on a turn that ends is stopped with the node, not
//	             lost
//
// agents routes CallTool and SendOutput by the agent path in them, and is ready when the main agent lists all its residents.
//
// A report carries the principal, channel and conversation for which the resident was created, so that the parent's answer
// reaches people there; its idempotency key is the output's id, so that it arrives once however often it is sent.
//
// A restart of an agent ends its turns and residents first (the runtime stops children); the scheduler reads its tasks
// from ledger, the main agent its residents. Notes and the last report of a resident are lost with it. Bounds: maxAgents
// residents, maxNotes notes each.
package agent
