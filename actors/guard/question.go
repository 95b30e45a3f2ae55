package guard

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// hashOf binds an approval to all that a person is shown: nothing of it can change without another hash.
func hashOf(c *messages.CheckCalls, call *messages.ToolInvocation) string {
	h := sha256.New()
	field := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	text := func(s string) { field([]byte(s)) }
	text("homeagent approval 1")
	text(call.GetName())
	field(call.GetArgumentsJson())
	text(c.GetAgent())
	who := make([]string, 0, len(c.GetPrincipals()))
	for _, p := range c.GetPrincipals() {
		who = append(who, p.GetKind().String()+" "+p.GetId())
	}
	slices.Sort(who)
	who = slices.Compact(who)
	text(strings.Join(who, "\x00"))
	text(c.GetChannel())
	text(c.GetConversation())
	text(c.GetTaskId())
	return hex.EncodeToString(h.Sum(nil))
}

var idForm = base32.StdEncoding.WithPadding(base32.NoPadding)

// idOf is short enough to be typed, and always the same for the same call with the same content.
func idOf(call, hash string) string {
	sum := sha256.Sum256([]byte("homeagent approval id 1\x00" + call + "\x00" + hash))
	return "ap-" + strings.ToLower(idForm.EncodeToString(sum[:8]))
}

// question makes the approval of a call. A zero expiry means never.
func question(c *messages.CheckCalls, call *messages.ToolInvocation, def *messages.ToolDef, reason string, now time.Time, expiry time.Duration) *messages.Approval {
	hash := hashOf(c, call)
	a := &messages.Approval{
		ApprovalId: idOf(call.GetCallId(), hash), TaskId: c.GetTaskId(), Agent: c.GetAgent(), Call: proto.CloneOf(call),
		ToolClass: classOf(def), Hash: hash, Channel: c.GetChannel(), Conversation: c.GetConversation(), Taint: c.GetTaint(),
		Reason: reason, CreatedUs: now.UnixMicro(), State: messages.ApprovalState_APPROVAL_STATE_PENDING,
	}
	for _, p := range c.GetPrincipals() {
		a.Principals = append(a.Principals, proto.CloneOf(p))
	}
	if expiry > 0 {
		a.ExpiresUs = now.Add(expiry).UnixMicro()
	}
	return a
}

// slim is what a verdict needs of a decided approval.
func slim(a *messages.Approval) *messages.Approval {
	return &messages.Approval{
		ApprovalId: a.GetApprovalId(), TaskId: a.GetTaskId(), Agent: a.GetAgent(), Hash: a.GetHash(),
		Call:  &messages.ToolInvocation{CallId: a.GetCall().GetCallId(), Name: a.GetCall().GetName()},
		State: a.GetState(), CreatedUs: a.GetCreatedUs(), DecidedUs: a.GetDecidedUs(), Note: a.GetNote(), ReleasedFor: a.GetReleasedFor(),
	}
}

func word(s messages.ApprovalState) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "APPROVAL_STATE_"))
}

func pending(a *messages.Approval) bool {
	return a.GetState() == messages.ApprovalState_APPROVAL_STATE_PENDING
}

// over tells whether a pending approval's time is over.
func over(a *messages.Approval, now time.Time) bool {
	return a.GetExpiresUs() != 0 && a.GetExpiresUs() <= now.UnixMicro()
}
