package messages

// The methods below mark the control lane: a message that has one goes ahead of every user message of its receiver,
// on this node by the wrapped mailbox and between nodes by the runtime's own routing of system messages.

// SystemMessage marks the control lane.
func (*Preempt) SystemMessage() {}

// SystemMessage marks the control lane.
func (*Resume) SystemMessage() {}

// SystemMessage marks the control lane.
func (*Cancel) SystemMessage() {}

// SystemMessage marks the control lane.
func (*Drain) SystemMessage() {}

// SystemMessage marks the control lane.
func (*StopAll) SystemMessage() {}

// SystemMessage marks the control lane.
func (*CancelCompletion) SystemMessage() {}

// SystemMessage marks the control lane.
func (*CancelTool) SystemMessage() {}

// SystemMessage marks the control lane.
func (*Inspect) SystemMessage() {}

// SystemMessage marks the control lane.
func (*PauseActor) SystemMessage() {}

// SystemMessage marks the control lane.
func (*UnpauseActor) SystemMessage() {}

// SystemMessage marks the control lane.
func (*DetachCall) SystemMessage() {}
