package channels

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/messages"
)

// A send in mid-turn goes through these steps, each of which waits for the one before:
//
//	may       a resident's allowed outputs are asked for; the main agent may use all
//	come      soon after a start: the channel is not there yet, and is waited for
//	intend    the intent is on disk, under the id of the call
//	deliver   the channel's owner has it
//	note      the receipt, or that it was given up, is on disk
//
// The tool's result is the last word of these and never better than what is known.

const (
	corrTools  = "tools"
	corrMay    = "may/"
	corrCome   = "come/"
	corrIntend = "intend/"
	corrNote   = "note/"
	// mayWait is how long an agent may take to say what it may use.
	mayWait = 5 * time.Second
	// toolsAgain is how long the registry of tools is left alone after it did not take these.
	toolsAgain = time.Second
	// defaultSends of one turn.
	defaultSends = 10
	// maxTurns is how many turns are remembered for what they sent.
	maxTurns = 256
	// maxSends on their way at a time.
	maxSends = 256
)

type (
	toolsLate struct{}
	mayLate   struct{ call string }
	comeLate  struct{ call string }
)

// toolCall is a call of one of this actor's tools.
type toolCall struct {
	ask    kit.Event
	msg    *messages.CallTool
	args   sendArgs
	step   string
	may    []string // the channels that its agent may use; none means all
	output *messages.OutputIntent
	sent   *messages.OutputSent
}

// turnSends is what one turn has sent.
type turnSends struct {
	count int
	// texts by what was sent where: the call that did.
	texts map[[sha256.Size]byte]string
}

// sends are the tools' part of the state.
type sends struct {
	calls map[string]*toolCall // by call id
	turns map[string]*turnSends
	order []string // of turns, the oldest first
}

func newSends() sends {
	return sends{calls: map[string]*toolCall{}, turns: map[string]*turnSends{}}
}

// awaitChannels registers the tools, at once where no channels are waited for.
func (s *state) awaitChannels() {
	if len(s.p.Awaited) == 0 {
		s.registerTools()
		return
	}
	s.awaiting = true
	s.add(kit.After{Key: corrTools, D: channelWait, Msg: toolsLate{}})
}

// channelsCame registers the tools when all channels are there that a node always has.
func (s *state) channelsCame() {
	missing := func(name string) bool { return s.channels[name] == nil }
	if s.awaiting && !slices.ContainsFunc(s.p.Awaited, missing) {
		s.add(kit.CancelAfter{Key: corrTools})
		s.registerTools()
	}
}

func (s *state) registerTools() {
	s.awaiting = false
	if s.p.Tools != nil {
		s.add(kit.Send{To: s.p.Tools, Corr: corrTools, Msg: &messages.RegisterTools{Tools: toolDefs()}})
	}
}

// onTool handles the messages of this part; false for every other one.
func (s *state) onTool(e kit.Event) bool {
	switch m := e.Msg.(type) {
	case *messages.CallTool:
		s.onCall(e, m)
	case *messages.CancelTool:
		s.onCancelCall(m)
	case *messages.AgentList:
		s.onMay(strings.TrimPrefix(e.Corr, corrMay), m)
	case mayLate:
		s.noMay(m.call)
	case comeLate:
		s.onComeLate(m.call)
	case toolsLate:
		s.registerTools()
	case *messages.LedgerDone:
		return s.onWritten(e.Corr, m)
	default:
		return false
	}
	return true
}

func (s *state) onCall(e kit.Event, m *messages.CallTool) {
	id := m.GetCall().GetCallId()
	if t := s.tool.calls[id]; t != nil {
		t.ask = e // the turn was made again and asks again
		return
	}
	t := &toolCall{ask: e, msg: m}
	switch m.GetCall().GetName() {
	case toolList:
	case toolSend:
		if err := arguments(m, &t.args); err != nil {
			s.endCall(t, failure(m, err))
			return
		}
	default:
		s.endCall(t, failure(m, &messages.ToolError{Reason: reasonNotFound, Detail: "Channels have no such tool.", Hint: "They have " + toolSend + " and " + toolList + "."}))
		return
	}
	if len(s.tool.calls) >= maxSends {
		s.endCall(t, failure(m, &messages.ToolError{Reason: reasonFailed, Detail: "Too much is being sent.", Hint: "Try again later."}))
		return
	}
	s.tool.calls[id] = t
	if m.GetAgent() == "" || m.GetAgent() == mainAgent {
		s.permitted(t, nil)
		return
	}
	t.step = corrMay
	s.add(
		kit.Send{To: kit.Path("agents/" + m.GetAgent()), Corr: corrMay + id, Msg: &messages.ListAgents{}},
		kit.After{Key: corrMay + id, D: mayWait, Msg: mayLate{id}},
	)
}

// onMay is what a resident may use.
func (s *state) onMay(call string, m *messages.AgentList) {
	t := s.tool.calls[call]
	if t == nil || t.step != corrMay {
		return
	}
	s.add(kit.CancelAfter{Key: corrMay + call})
	if len(m.GetAgents()) == 0 || m.GetAgents()[0].GetSpec().GetAgent() != t.msg.GetAgent() {
		s.noMay(call)
		return
	}
	s.permitted(t, m.GetAgents()[0].GetSpec().GetAllowedOutputs())
}

// noMay refuses: what an agent may use is not known.
func (s *state) noMay(call string) {
	if t := s.tool.calls[call]; t != nil && t.step == corrMay {
		s.endCall(t, failure(t.msg, &messages.ToolError{
			Reason: reasonFailed, Detail: "It could not be found out which channels this agent may use; nothing was sent.", Hint: "Try again later.",
		}))
	}
}

// usable are the channels that an agent may send over; none in allowed means all. Those among agents are not people's.
func (s *state) usable(allowed []string) []string {
	var out []string
	for _, n := range slices.Sorted(maps.Keys(s.channels)) {
		path := s.channels[n].GetOwner().GetPath()
		if path == "agents" || len(allowed) > 0 && !slices.Contains(allowed, n) {
			continue
		}
		out = append(out, n)
	}
	return out
}

// permitted goes on once it is known what the agent may use.
func (s *state) permitted(t *toolCall, allowed []string) {
	usable := s.usable(allowed)
	if t.msg.GetCall().GetName() == toolList {
		s.endCall(t, success(t.msg, s.listed(t.msg, usable)))
		return
	}
	if t.args.Channel != "" && s.channels[t.args.Channel] == nil && s.now.Before(s.settled) {
		id := t.msg.GetCall().GetCallId()
		t.step, t.may = corrCome, allowed
		s.add(kit.After{Key: corrCome + id, D: s.settled.Sub(s.now), Msg: comeLate{id}})
		return
	}
	if err := s.checkSend(t, usable); err != nil {
		s.endCall(t, failure(t.msg, err))
		return
	}
	conversation := ""
	switch {
	case t.args.Conversation != nil:
		conversation = *t.args.Conversation
	case t.args.Channel == t.msg.GetChannel():
		conversation = t.msg.GetConversation()
	}
	id := t.msg.GetCall().GetCallId()
	t.output = &messages.OutputIntent{
		OutputId: id + "/send", TaskId: t.msg.GetTaskId(), Channel: t.args.Channel, Conversation: conversation,
		Parts: []*messages.Part{{Content: &messages.Part_Text{Text: t.args.Text}}}, Agent: t.msg.GetAgent(), CreatedUs: s.now.UnixMicro(),
	}
	if err := s.countSend(t); err != nil {
		s.endCall(t, failure(t.msg, err))
		return
	}
	t.step = corrIntend
	s.add(kit.Send{To: s.p.Ledger, Corr: corrIntend + id, Msg: &messages.LedgerExecute{
		Sync: true, Ops: []*messages.LedgerOp{{Op: &messages.LedgerOp_Output{Output: t.output}}},
	}})
}

// onComeLate tells that the channel of a send did not come in time.
func (s *state) onComeLate(call string) {
	if t := s.tool.calls[call]; t != nil && t.step == corrCome {
		s.permitted(t, t.may)
	}
}

// sendCome goes on with the sends that waited for a channel.
func (s *state) sendCome(name string) {
	for _, id := range slices.Sorted(maps.Keys(s.tool.calls)) {
		if t := s.tool.calls[id]; t.step == corrCome && t.args.Channel == name {
			s.add(kit.CancelAfter{Key: corrCome + id})
			s.permitted(t, t.may)
		}
	}
}

func (s *state) listed(m *messages.CallTool, usable []string) string {
	type shown struct {
		Name string `json:"name"`
		Kind string `json:"kind"`
		This bool   `json:"this,omitempty"`
	}
	list := []shown{}
	for _, n := range usable {
		kind := "asynchronous"
		if s.channels[n].GetKind() == messages.ChannelKind_CHANNEL_KIND_INTERACTIVE {
			kind = "interactive"
		}
		list = append(list, shown{n, kind, n == m.GetChannel()})
	}
	b, err := json.Marshal(map[string]any{"channels": list})
	if err != nil {
		panic(err) // texts always encode
	}
	return string(b)
}

// checkSend refuses what cannot be sent.
func (s *state) checkSend(t *toolCall, usable []string) *messages.ToolError {
	conversation := ""
	if t.args.Conversation != nil {
		conversation = *t.args.Conversation
	}
	switch {
	case t.args.Channel == "":
		return &messages.ToolError{Reason: reasonRequired, Field: "channel", Detail: "The channel is missing.", Hint: knownHint(usable)}
	case !slices.Contains(usable, t.args.Channel) && s.channels[t.args.Channel] != nil:
		return &messages.ToolError{
			Reason: reasonDenied, Field: "channel", Detail: fmt.Sprintf("This agent may not send over the channel %q.", t.args.Channel), Hint: knownHint(usable),
		}
	case !slices.Contains(usable, t.args.Channel):
		return &messages.ToolError{Reason: reasonNotFound, Field: "channel", Detail: fmt.Sprintf("There is no channel %q.", t.args.Channel), Hint: knownHint(usable)}
	case strings.TrimSpace(t.args.Text) == "":
		return &messages.ToolError{Reason: reasonRequired, Field: "text", Detail: "The text is empty.", Hint: "Say something."}
	case len(t.args.Text) > s.p.MaxText:
		return &messages.ToolError{
			Reason: reasonType, Field: "text", Detail: fmt.Sprintf("The text has %d bytes; at most %d are sent.", len(t.args.Text), s.p.MaxText), Hint: "Send it in parts.",
		}
	case len(conversation) > 256 || strings.ContainsFunc(conversation, unicode.IsControl):
		return &messages.ToolError{Reason: reasonType, Field: "conversation", Detail: "A conversation has at most 256 bytes and no control characters."}
	}
	return nil
}

func knownHint(usable []string) string {
	if len(usable) == 0 {
		return "There is no channel to send over."
	}
	return "Known channels: " + strings.Join(usable, ", ") + "."
}

// saidKey is what was sent where.
func saidKey(o *messages.OutputIntent) [sha256.Size]byte {
	var text strings.Builder
	for _, p := range o.GetParts() {
		text.WriteString(p.GetText())
	}
	return sha256.Sum256([]byte(o.GetChannel() + "\x00" + o.GetConversation() + "\x00" + strings.TrimSpace(text.String())))
}

// countSend keeps a turn from sending without end, and from sending the same twice.
func (s *state) countSend(t *toolCall) *messages.ToolError {
	id, call := t.msg.GetTaskId(), t.msg.GetCall().GetCallId()
	turn := s.tool.turns[id]
	if turn == nil {
		turn = &turnSends{texts: map[[sha256.Size]byte]string{}}
		s.tool.turns[id] = turn
		s.tool.order = append(s.tool.order, id)
		if len(s.tool.order) > maxTurns {
			delete(s.tool.turns, s.tool.order[0])
			s.tool.order = s.tool.order[1:]
		}
	}
	key := saidKey(t.output)
	by, said := turn.texts[key]
	switch {
	case said && by == call:
		return nil // made again, and counted
	case said:
		return &messages.ToolError{
			Reason: reasonDenied, Field: "text", Detail: "This turn has sent the very same text there already; it was not sent again.",
			Hint: "Go on, and say the rest in your answer.",
		}
	}
	if most := s.values.Int(configs.KeyToolsSends, defaultSends); int64(turn.count) >= most {
		return &messages.ToolError{
			Reason: reasonDenied, Detail: fmt.Sprintf("A turn may send %d messages (%s); no more are sent.", most, configs.KeyToolsSends),
			Hint: "Say the rest in your answer.",
		}
	}
	turn.count++
	turn.texts[key] = call
	return nil
}

// unsay takes back what did not go out, so that it may be tried again.
func (s *state) unsay(t *toolCall) {
	if turn := s.tool.turns[t.msg.GetTaskId()]; turn != nil {
		delete(turn.texts, saidKey(t.output))
	}
}

// said tells whether a turn has sent its answer, word for word, where the answer goes.
func (s *state) said(o *messages.OutputIntent) bool {
	turn := s.tool.turns[o.GetTaskId()]
	if turn == nil {
		return false
	}
	_, ok := turn.texts[saidKey(o)]
	return ok
}

// onWritten goes on when the ledger has written for a send; false when it was for something else.
func (s *state) onWritten(corr string, m *messages.LedgerDone) bool {
	if call, ok := strings.CutPrefix(corr, corrNote); ok {
		s.onNoted(call, m.GetError())
		return true
	}
	call, ok := strings.CutPrefix(corr, corrIntend)
	if !ok {
		return false
	}
	t := s.tool.calls[call]
	if t == nil {
		return true
	}
	if err := m.GetError(); err != nil {
		s.notIntended(t, err)
		return true
	}
	var r *messages.LedgerResult
	if len(m.GetResults()) > 0 {
		r = m.GetResults()[0]
	}
	switch {
	case r.GetReceipt() != nil:
		s.endCall(t, outcome(t, &messages.OutputSent{Receipt: r.GetReceipt(), Error: r.GetReceipt().GetError()}))
	case r.GetKnown():
		s.sendAgain(t)
	default:
		s.deliverCall(t, false)
	}
	return true
}

func (s *state) notIntended(t *toolCall, err *messages.Error) {
	s.unsay(t)
	s.endCall(t, failure(t.msg, &messages.ToolError{
		Reason: reasonFailed, Detail: "Nothing was sent: " + err.GetMessage(), Hint: err.GetHint(),
	}))
}

// sendAgain goes on with what an earlier process may have sent: a channel that tells repeats apart gets it again, any
// other does not.
func (s *state) sendAgain(t *toolCall) {
	id := t.output.GetOutputId()
	s.unsent = slices.DeleteFunc(s.unsent, func(u *messages.OutputIntent) bool { return u.GetOutputId() == id })
	ch := s.channels[t.output.GetChannel()]
	if ch.GetOwner() == nil || ch.GetIdempotent() {
		s.deliverCall(t, true)
		return
	}
	s.note(t, &messages.OutputSent{Error: &messages.Error{
		Code: codeMaybe, Message: "The node was restarted while it was being sent; it may have reached the person, or not.",
		Hint: "Do not send it again before you know.",
	}})
}

// codeMaybe is that of a send whose outcome nobody knows.
const codeMaybe = "maybe_sent"

func (s *state) deliverCall(t *toolCall, repeated bool) {
	ch := s.channels[t.output.GetChannel()]
	if ch == nil { // it was there a moment ago; names are never taken back
		s.note(t, &messages.OutputSent{Error: s.unknownChannel(t.output.GetChannel())})
		return
	}
	t.step = "out/"
	if ch.GetOwner() == nil {
		s.show(t.output)
		s.counts.Sent++
		s.note(t, &messages.OutputSent{Receipt: s.receipt(t.output)})
		return
	}
	s.forward(&sending{output: t.output, call: t}, ch, repeated)
}

// note writes down what came of a send. Its result is given when that is on disk.
func (s *state) note(t *toolCall, sent *messages.OutputSent) {
	t.sent, t.step = sent, corrNote
	r := proto.CloneOf(sent.GetReceipt())
	if r == nil {
		r = &messages.OutputReceipt{}
	}
	r.OutputId = t.output.GetOutputId()
	if r.GetAtUs() == 0 {
		r.AtUs = s.now.UnixMicro()
	}
	r.Error = sent.GetError()
	s.add(kit.Send{To: s.p.Ledger, Corr: corrNote + t.msg.GetCall().GetCallId(), Msg: &messages.LedgerExecute{
		Sync: true, Ops: []*messages.LedgerOp{{Op: &messages.LedgerOp_Sent{Sent: r}}},
	}})
}

// onNoted gives the result. What was sent was sent, also when the note of it was not written.
func (s *state) onNoted(call string, err *messages.Error) {
	t := s.tool.calls[call]
	if t == nil {
		return
	}
	if err != nil {
		s.add(kit.Log{Level: kit.Warn, Text: "receipt of a send not written", Attrs: []any{"call_id", call, "error", err.GetMessage()}})
	}
	if t.sent.GetError() != nil && !unsure(t.sent.GetError()) {
		s.unsay(t)
	}
	s.endCall(t, outcome(t, t.sent))
}

// unsure tells whether an output may have gone out in spite of the error.
func unsure(err *messages.Error) bool {
	switch err.GetCode() {
	case codeMaybe, "send_timeout", kit.CodeGone, kit.CodeTimeout:
		return true
	}
	return false
}

// outcome is the result of a send: one word when all went well, since models take much to say for a reason to say more.
func outcome(t *toolCall, sent *messages.OutputSent) *messages.ToolResult {
	err := sent.GetError()
	if err == nil {
		return success(t.msg, "ok")
	}
	reason, detail := reasonFailed, "It was not sent: "
	if unsure(err) {
		reason, detail = reasonUnknown, ""
	}
	return failure(t.msg, &messages.ToolError{Reason: reason, Detail: detail + err.GetMessage(), Hint: err.GetHint()})
}

// onCancelCall ends a call of which nothing was done; one that is on its way gives its real result.
func (s *state) onCancelCall(m *messages.CancelTool) {
	if t := s.tool.calls[m.GetCallId()]; t != nil && (t.step == corrMay || t.step == corrCome) {
		s.add(kit.CancelAfter{Key: t.step + m.GetCallId()})
		s.endCall(t, failure(t.msg, &messages.ToolError{Reason: reasonCancel, Detail: "The call was cancelled; nothing was sent."}))
	}
}

// toolFailed handles a request of this part that was refused; false when it was of another.
func (s *state) toolFailed(corr string, err *messages.Error) bool {
	if corr == corrTools {
		s.add(kit.After{Key: corrTools, D: toolsAgain, Msg: toolsLate{}})
		return true
	}
	if call, ok := strings.CutPrefix(corr, corrMay); ok {
		s.add(kit.CancelAfter{Key: corrMay + call})
		s.noMay(call)
		return true
	}
	if call, ok := strings.CutPrefix(corr, corrIntend); ok {
		if t := s.tool.calls[call]; t != nil {
			s.notIntended(t, err)
		}
		return true
	}
	if call, ok := strings.CutPrefix(corr, corrNote); ok {
		s.onNoted(call, err)
		return true
	}
	return false
}

// endCall gives a call its one result.
func (s *state) endCall(t *toolCall, r *messages.ToolResult) {
	if id := t.msg.GetCall().GetCallId(); s.tool.calls[id] == t {
		delete(s.tool.calls, id)
	}
	s.add(t.ask.Reply(r))
}
