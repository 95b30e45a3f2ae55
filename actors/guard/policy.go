package guard

import (
	"fmt"
	"slices"
	"strings"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/messages"
)

// rows are the rules of each kind of principal, with how a sentence names it.
var rows = map[messages.PrincipalKind]struct{ name, who string }{
	messages.PrincipalKind_PRINCIPAL_KIND_UNSPECIFIED: {"stranger", "strangers"},
	messages.PrincipalKind_PRINCIPAL_KIND_OWNER:       {"owner", "the owner"},
	messages.PrincipalKind_PRINCIPAL_KIND_PERSON:      {"person", "other people"},
	messages.PrincipalKind_PRINCIPAL_KIND_AGENT:       {"agent", "residents"},
	messages.PrincipalKind_PRINCIPAL_KIND_SYSTEM:      {"system", "the node itself"},
	messages.PrincipalKind_PRINCIPAL_KIND_NODE:        {"node", "paired nodes"},
	messages.PrincipalKind_PRINCIPAL_KIND_TOKEN:       {"token", "programs with a token"},
}

// toolKeys begins the keys with the rule for one tool.
var toolKeys, _, _ = strings.Cut(configs.KeyGuardTool, "<")

// verdictOf reads a rule; what is none is deny.
func verdictOf(text string) messages.Verdict {
	switch text {
	case configs.GuardAllow:
		return messages.Verdict_VERDICT_ALLOW
	case configs.GuardAsk:
		return messages.Verdict_VERDICT_ASK
	}
	return messages.Verdict_VERDICT_DENY
}

// ruling is the strictest of the rules seen so far and why it holds.
type ruling struct {
	verdict messages.Verdict
	reason  string
}

func (r *ruling) take(v messages.Verdict, reason string) {
	if v > r.verdict { // allow < ask < deny
		r.verdict, r.reason = v, reason
	}
}

func classOf(d *messages.ToolDef) messages.ToolClass {
	if _, known := messages.ToolClass_name[int32(d.GetToolClass())]; !known || d.GetToolClass() == 0 {
		return messages.ToolClass_TOOL_CLASS_WRITE
	}
	return d.GetToolClass()
}

func className(c messages.ToolClass) string {
	return strings.ToLower(strings.TrimPrefix(c.String(), "TOOL_CLASS_"))
}

// rule decides about one call without asking anybody.
func rule(values *kit.Values, c *messages.CheckCalls, call *messages.ToolInvocation, def *messages.ToolDef) ruling {
	switch {
	case call.GetDenied() != "":
		return ruling{messages.Verdict_VERDICT_DENY, call.GetDenied()}
	case call.GetInvalid() != "":
		return ruling{messages.Verdict_VERDICT_DENY, "The arguments are not usable: " + call.GetInvalid() + "."}
	case def.GetName() == "" || def.GetName() != call.GetName():
		return ruling{messages.Verdict_VERDICT_DENY, fmt.Sprintf("There is no tool %q.", call.GetName())}
	}
	class := className(classOf(def))
	r := ruling{verdict: messages.Verdict_VERDICT_ALLOW}
	apply := func(row, who string) {
		key := configs.GuardKey(row, class)
		v := verdictOf(values.Text(key))
		r.take(v, sentence(v, class, who, key))
	}
	if len(c.GetPrincipals()) == 0 {
		apply("stranger", rows[0].who)
	}
	for _, p := range c.GetPrincipals() {
		row, known := rows[p.GetKind()]
		if !known || p.GetId() == "" {
			row = rows[0]
		}
		apply(row.name, row.who)
	}
	if strings.Contains(c.GetAgent(), "/") {
		agent := rows[messages.PrincipalKind_PRINCIPAL_KIND_AGENT]
		apply(agent.name, agent.who)
	}
	if tainted(c.GetTaint()) {
		apply(configs.GuardTainted, "a turn that has read foreign text")
	}
	return override(values, r, call.GetName())
}

// tainted tells whether a turn has read what nobody vouches for. What the model said and what recall brought bear the
// taint of what they were made of, which the turn adds up.
func tainted(t messages.Taint) bool {
	return t == messages.Taint_TAINT_UNSPECIFIED || t == messages.Taint_TAINT_FOREIGN
}

// override applies the rule for the one tool: stricter always, milder only where a person would have been asked.
func override(values *kit.Values, r ruling, tool string) ruling {
	key := toolKeys + strings.ToLower(tool)
	text := values.Text(key)
	if text == "" {
		return r
	}
	v := verdictOf(text)
	if v == messages.Verdict_VERDICT_ALLOW && r.verdict == messages.Verdict_VERDICT_ASK {
		return ruling{verdict: v}
	}
	what := "needs a person's word"
	if v == messages.Verdict_VERDICT_DENY {
		what = "is denied"
	}
	r.take(v, fmt.Sprintf("The tool %s %s (%s).", tool, what, key))
	return r
}

func sentence(v messages.Verdict, class, who, key string) string {
	if v == messages.Verdict_VERDICT_ASK {
		return fmt.Sprintf("Tools of class %s need a person's word for %s (%s).", class, who, key)
	}
	return fmt.Sprintf("Tools of class %s are denied for %s (%s).", class, who, key)
}

// mayDecide tells whether somebody may answer questions: the owner, and people whom the owner named by their id.
func mayDecide(values *kit.Values, p *messages.Principal) bool {
	switch {
	case p.GetId() == "":
		return false
	case p.GetKind() == messages.PrincipalKind_PRINCIPAL_KIND_OWNER:
		return true
	case p.GetKind() == messages.PrincipalKind_PRINCIPAL_KIND_PERSON:
		return slices.Contains(values.List(configs.KeyGuardDeciders), p.GetId())
	}
	return false
}
