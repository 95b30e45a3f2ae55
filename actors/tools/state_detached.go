package tools

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

const (
	// maxKept is how many results of detached calls are kept, the oldest goes first.
	maxKept = 64
	// keptFor is how long they are.
	keptFor = 24 * time.Hour
	// maxWait of calls_result.
	maxWait = 30 * time.Second
	// noticeAgain is how long a notice waits that was not taken.
	noticeAgain = 10 * time.Second
	// maxNotice is the most of a result that a notice shows, in bytes.
	maxNotice = 1 << 10
)

// detached is a call that went on under a handle, or has ended so. Its handle is its call id.
type detached struct {
	ask    *messages.CallTool // as it was asked for
	from   time.Time
	ended  time.Time
	result *messages.ToolResult // nil while it runs
	notice *messages.SubmitInput
	waits  []*waiting
}

// waiting is a calls_result that waits for a result.
type waiting struct {
	ask kit.Event
	inv *messages.ToolInvocation
}

type (
	// enough ends a wait of calls_result.
	enough struct{ call string }
	// notice is a timer: a notice was not taken.
	notice struct{ handle string }
)

func (d *detached) tool() string { return d.ask.GetCall().GetName() }

func (d *detached) word() string {
	switch {
	case d.result == nil:
		return "running"
	case d.result.GetError() != nil:
		return "failed"
	}
	return "done"
}

// onDetach lets running calls go on under a handle. Who waits for them is answered at once.
func (m *machine) onDetach(x *messages.DetachCall) {
	for _, c := range m.running(func(c *call) bool { return c.id == x.GetCallId() && !c.cancelled && !c.detached }) {
		c.detached, c.limit = true, c.full
		m.detached[c.id] = &detached{ask: c.msg, from: c.from}
		// The turn's deadline does not bind it any more; its own time does.
		m.add(kit.After{Key: c.corr, D: c.full - m.now.Sub(c.from), Msg: late{c.corr}})
		// It is counted when it has its real result.
		m.add(c.ask.Reply(&messages.ToolResult{
			CallId: c.id, Name: c.name, Content: handleText(c.id), TookMs: m.now.Sub(c.from).Milliseconds(),
			Taint: messages.Taint_TAINT_TRUSTED,
		}))
	}
}

func handleText(handle string) string {
	return jsonText(struct {
		Handle string `json:"handle"`
		State  string `json:"state"`
	}{handle, "running"})
}

// jsonText writes a value that always encodes.
func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// keep takes the real result of a detached call. Whoever waits for it gets it; else the agent is told by an input.
func (m *machine) keep(c *call, r *messages.ToolResult) {
	d := m.detached[c.id]
	if d == nil || d.result != nil {
		return
	}
	d.result, d.ended = r, m.now
	m.count(c.name, r)
	waits := d.waits
	d.waits = nil
	for _, w := range waits {
		m.add(kit.CancelAfter{Key: waitKey(w.inv.GetCallId())})
		m.hand(w.ask, w.inv, d)
	}
	if len(waits) == 0 {
		d.notice = m.noticeOf(d)
		m.sendNotice(c.id)
	}
	m.forget()
}

// forget lets go of results that are too old or too many.
func (m *machine) forget() {
	var ended []string
	for h, d := range m.detached {
		switch {
		case d.result == nil:
		case m.now.Sub(d.ended) >= keptFor:
			delete(m.detached, h)
		default:
			ended = append(ended, h)
		}
	}
	slices.SortFunc(ended, func(a, b string) int {
		return cmp.Or(m.detached[a].ended.Compare(m.detached[b].ended), strings.Compare(a, b))
	})
	for len(ended) > maxKept {
		delete(m.detached, ended[0])
		ended = ended[1:]
	}
}

// noticeOf tells the agent that a call has ended, in the place where it was made and with the rights it was made with.
func (m *machine) noticeOf(d *detached) *messages.SubmitInput {
	id := d.ask.GetCall().GetCallId()
	how, text := "has ended", d.result.GetContent()
	if e := d.result.GetError(); e != nil {
		how, text = "has failed", strings.TrimSpace(e.GetDetail()+" "+e.GetHint())
	}
	return &messages.SubmitInput{Input: &messages.Input{
		Id: derivedID(m.now, "call:"+id), IdempotencyKey: "call:" + id, Agent: d.ask.GetAgent(), Channel: d.ask.GetChannel(),
		Conversation: d.ask.GetConversation(), Source: messages.InputSource_INPUT_SOURCE_TERMINAL,
		Principal: &messages.Principal{Id: "call:" + id, Name: d.tool(), Kind: messages.PrincipalKind_PRINCIPAL_KIND_SYSTEM},
		OnBehalf:  askers(d.ask),
		Parts: []*messages.Part{{Content: &messages.Part_Text{Text: fmt.Sprintf(
			"The call of %s that went on by itself %s after %v. Its handle is %s; %s gives the whole result. It begins:\n%s",
			d.tool(), how, d.ended.Sub(d.from).Round(time.Millisecond), id, toolResult, capped(text, maxNotice),
		)}}},
		Taint: d.result.GetTaint(), CreatedUs: m.now.UnixMicro(), PersonWaits: d.ask.GetPersonWaits(), Cause: d.ask.GetTaskId(),
	}}
}

// askers are those whose words the turn of a call worked on.
func askers(c *messages.CallTool) []*messages.Principal {
	if len(c.GetPrincipals()) > 0 {
		return c.GetPrincipals()
	}
	if c.GetPrincipal() != nil {
		return []*messages.Principal{c.GetPrincipal()}
	}
	return nil
}

const corrNotice = "notice/"

func (m *machine) sendNotice(handle string) {
	if d := m.detached[handle]; d != nil && d.notice != nil {
		m.add(kit.Send{To: kit.Path(string(kit.FacilityChannels)), Corr: corrNotice + handle, Msg: d.notice})
	}
}

// onNotice is what channels made of a notice; what may be taken later is sent again.
func (m *machine) onNotice(handle string, err *messages.Error, again bool) {
	d := m.detached[handle]
	switch {
	case d == nil || d.notice == nil:
	case err == nil:
		d.notice = nil
	case again || err.GetRetryAfterMs() > 0 || err.GetCode() == "disk_low":
		m.add(kit.After{Key: corrNotice + handle, D: noticeAgain, Msg: notice{handle}})
	default:
		d.notice = nil
		m.add(kit.Log{Level: kit.Warn, Text: "notice of a call refused", Attrs: []any{
			"call_id", handle, "code", err.GetCode(), "error", err.GetMessage(),
		}})
	}
}

// hand gives the result of a detached call to a calls_result.
func (m *machine) hand(e kit.Event, inv *messages.ToolInvocation, d *detached) {
	r := proto.CloneOf(d.result)
	r.CallId, r.Name = inv.GetCallId(), inv.GetName()
	d.notice = nil // it is known now
	m.answer(e, inv.GetName(), r)
}

// callsList serves calls_list.
func (m *machine) callsList(e kit.Event, c *messages.CallTool, _ []byte) {
	type shown struct {
		Handle string `json:"handle"`
		Tool   string `json:"tool"`
		State  string `json:"state"`
		Since  string `json:"since"`
		Ended  string `json:"ended,omitempty"`
	}
	m.forget()
	list := []shown{}
	for h, d := range m.detached {
		if d.ask.GetAgent() != c.GetAgent() {
			continue
		}
		s := shown{Handle: h, Tool: d.tool(), State: d.word(), Since: d.from.UTC().Format(time.RFC3339)}
		if d.result != nil {
			s.Ended = d.ended.UTC().Format(time.RFC3339)
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b shown) int {
		return cmp.Or(strings.Compare(a.Since, b.Since), strings.Compare(a.Handle, b.Handle))
	})
	m.served(e, c, jsonText(map[string]any{"calls": list}))
}

// callsResult serves calls_result.
func (m *machine) callsResult(e kit.Event, c *messages.CallTool, args []byte) {
	var a struct {
		Handle string `json:"handle"`
		WaitS  int64  `json:"wait_s"`
	}
	inv := c.GetCall()
	if err := json.Unmarshal(args, &a); err != nil { // the schema let them through
		m.refuse(e, inv, &messages.ToolError{Reason: reasonType, Detail: err.Error()})
		return
	}
	m.forget()
	d := m.detached[a.Handle]
	wait := min(time.Duration(a.WaitS)*time.Second, maxWait)
	if us := c.GetDeadlineUs(); us > 0 {
		wait = min(wait, time.UnixMicro(us).Sub(m.now))
	}
	switch {
	case d == nil || d.ask.GetAgent() != c.GetAgent():
		m.refuse(e, inv, &messages.ToolError{
			Reason: reasonUnknown, Field: "handle",
			Detail: fmt.Sprintf("Nothing is known of a call %q: its result is too old, the node was restarted while it ran, or it was never there. It may have taken effect.", a.Handle),
			Hint:   "See calls_list, and find out by other means whether it did what it was for.",
		})
	case d.result != nil:
		m.hand(e, inv, d)
	case wait <= 0:
		m.served(e, c, handleText(a.Handle))
	default:
		d.waits = append(d.waits, &waiting{ask: e, inv: inv})
		m.add(kit.After{Key: waitKey(inv.GetCallId()), D: wait, Msg: enough{inv.GetCallId()}})
	}
}

func waitKey(call string) string { return "wait/" + call }

// endWait takes a calls_result out of those that wait; nil when it does not.
func (m *machine) endWait(call string) (handle string, w *waiting) {
	for h, d := range m.detached {
		if i := slices.IndexFunc(d.waits, func(w *waiting) bool { return w.inv.GetCallId() == call }); i >= 0 {
			w = d.waits[i]
			d.waits = slices.Delete(d.waits, i, i+1)
			return h, w
		}
	}
	return "", nil
}

// onEnough answers a calls_result whose wait is over.
func (m *machine) onEnough(call string) {
	if h, w := m.endWait(call); w != nil {
		m.answer(w.ask, w.inv.GetName(), &messages.ToolResult{
			CallId: call, Name: w.inv.GetName(), Content: handleText(h), Taint: messages.Taint_TAINT_TRUSTED,
		})
	}
}

// cancelWait ends a calls_result; the call it waits for goes on.
func (m *machine) cancelWait(call string) {
	if _, w := m.endWait(call); w != nil {
		m.add(kit.CancelAfter{Key: waitKey(call)})
		m.refuse(w.ask, w.inv, &messages.ToolError{Reason: reasonCancelled, Detail: "The wait was cancelled; the call goes on."})
	}
}

// onStopping cancels what goes on by itself: nobody is left to keep its result.
func (m *machine) onStopping() {
	for _, c := range m.running(func(c *call) bool { return c.detached }) {
		m.add(kit.Send{To: c.owner, Msg: &messages.CancelTool{CallId: c.id, Reason: "stop"}})
	}
}

// derivedID makes the id of an input from the time and what it stems from: a pure function, unique as far as seed is.
func derivedID(now time.Time, seed string) string {
	sum := sha256.Sum256([]byte(seed))
	var id ulid.ULID
	if err := id.SetTime(ulid.Timestamp(now)); err != nil {
		panic(errors.Join(errClock, err))
	}
	copy(id[6:], sum[:10])
	return id.String()
}

var errClock = errors.New("tools: the clock is beyond the year 10889")
