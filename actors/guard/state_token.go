package guard

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/memory/approvals"
	"homeagent/messages"
)

// maxTokens is how many named tokens there may be.
const maxTokens = 256

// token is a named token; a busy one is being written.
type token struct {
	t    *messages.NamedToken
	busy bool
}

// tokenChange is a token that is to be kept, or forgotten and then told to who asked.
type tokenChange struct {
	t    *messages.NamedToken
	gone bool
	ask  kit.Event
}

func named(t approvals.Token) *messages.NamedToken {
	return &messages.NamedToken{
		Name: t.Record.GetName(), Principal: t.Record.GetPrincipal(), CreatedUs: t.Record.GetCreatedUs(),
		ExpiresUs: t.Record.GetExpiresUs(), Digest: t.Hash[:],
	}
}

func (c *tokenChange) op() (*messages.LedgerOp, error) {
	h := approvals.Hash(c.t.GetDigest())
	if c.gone {
		return approvals.DeleteToken(h), nil
	}
	return approvals.PutToken(approvals.Token{Hash: h, Record: &messages.TokenRecord{
		Name: c.t.GetName(), Principal: c.t.GetPrincipal(), CreatedUs: c.t.GetCreatedUs(), ExpiresUs: c.t.GetExpiresUs(),
	}})
}

// badToken says what is wrong with a token. The principal's id follows from kind and name, so that two tokens never
// stand for one principal, and a name never for another's.
func (m *machine) badToken(t *messages.NamedToken) *messages.Error {
	bad := func(message, hint string) *messages.Error { return errToken(CodeBadToken, t.GetName(), message, hint) }
	prefix := map[messages.PrincipalKind]string{
		messages.PrincipalKind_PRINCIPAL_KIND_TOKEN: "token:", messages.PrincipalKind_PRINCIPAL_KIND_PERSON: "person:",
	}[t.GetPrincipal().GetKind()]
	switch {
	case !approvals.ValidName(t.GetName()):
		return bad("A token cannot have this name.", "Use 1 to 32 lower-case letters, digits and hyphens.")
	case prefix == "" || t.GetPrincipal().GetId() != prefix+t.GetName():
		return bad("A token stands for a program or a person of its own name.", "Use the kind token or person.")
	case len(t.GetDigest()) != sha256.Size:
		return bad("The token has no hash.", "")
	case t.GetExpiresUs() != 0 && t.GetExpiresUs() <= m.now.UnixMicro():
		return bad("The token would have expired already.", "Let it expire later, or never.")
	}
	return nil
}

func (m *machine) addToken(e kit.Event, t *messages.NamedToken) bool {
	x := m.tokens[t.GetName()]
	switch {
	case x != nil && x.busy:
		return false
	case x != nil && bytes.Equal(x.t.GetDigest(), t.GetDigest()):
		m.add(e.Reply(proto.CloneOf(x.t)))
		return true
	case x != nil:
		m.add(e.Reply(errToken(CodeTokenExists, t.GetName(), "There is a token of this name already.", "Remove it first, or use another name.")))
		return true
	}
	if err := m.badToken(t); err != nil {
		m.add(e.Reply(err))
		return true
	}
	if len(m.tokens) >= maxTokens {
		m.add(e.Reply(errToken(CodeTooManyTokens, t.GetName(), "There are as many tokens as the node keeps.", "Remove one that is no longer used.")))
		return true
	}
	t = proto.CloneOf(t)
	if t.GetCreatedUs() == 0 {
		t.CreatedUs = m.now.UnixMicro()
	}
	m.tokens[t.GetName()] = &token{t: t, busy: true}
	m.changes = append(m.changes, change{token: &tokenChange{t: t}})
	return false
}

func (m *machine) removeToken(e kit.Event, name string) bool {
	x := m.tokens[name]
	switch {
	case x == nil:
		m.add(e.Reply(errToken(CodeUnknownToken, name, "There is no token of this name.", "`waiter tokens list` shows all.")))
	case x.busy:
		return false
	default:
		x.busy = true
		m.changes = append(m.changes, change{token: &tokenChange{t: x.t, gone: true, ask: kit.Event{From: e.From, Corr: e.Corr}}})
	}
	return true
}

func (m *machine) listTokens() *messages.TokenList {
	l := &messages.TokenList{}
	for _, name := range slices.Sorted(maps.Keys(m.tokens)) {
		if x := m.tokens[name]; !x.busy {
			l.Tokens = append(l.Tokens, proto.CloneOf(x.t))
		}
	}
	return l
}

func (m *machine) tokenWritten(c *tokenChange) {
	if !c.gone {
		m.tokens[c.t.GetName()].busy = false
		return
	}
	delete(m.tokens, c.t.GetName())
	m.add(c.ask.Reply(proto.CloneOf(c.t)))
}

// tokenFailed takes a change back: what was to be added is not there, what was to be removed still is.
func (m *machine) tokenFailed(c *tokenChange, err *messages.Error) {
	if !c.gone {
		delete(m.tokens, c.t.GetName())
		return
	}
	m.tokens[c.t.GetName()].busy = false
	m.add(c.ask.Reply(err))
}
