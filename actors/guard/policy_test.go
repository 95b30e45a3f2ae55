package guard

import (
	"slices"
	"strings"
	"testing"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/messages"
)

const (
	allow = messages.Verdict_VERDICT_ALLOW
	ask   = messages.Verdict_VERDICT_ASK
	deny  = messages.Verdict_VERDICT_DENY
)

func classes() []messages.ToolClass {
	var out []messages.ToolClass
	for c := messages.ToolClass_TOOL_CLASS_READ; c <= messages.ToolClass_TOOL_CLASS_MEMORY; c++ {
		out = append(out, c)
	}
	return out
}

// ruled is the verdict by the default policy with the pairs.
func ruled(c *messages.CheckCalls, def *messages.ToolDef, pairs ...string) ruling {
	var v kit.Values
	v.Take(policy(pairs...))
	return rule(&v, c, call("c", "x", "{}"), def)
}

func of(who ...*messages.Principal) *messages.CheckCalls {
	return &messages.CheckCalls{Agent: "main", Principals: who, Taint: messages.Taint_TAINT_TRUSTED}
}

// TestDefaults holds what the documentation says, for each kind and class: read, write, exec, net, send, device, memory.
func TestDefaults(t *testing.T) {
	kind := func(k messages.PrincipalKind) *messages.Principal { return &messages.Principal{Id: "x", Kind: k} }
	foreign := of(owner)
	foreign.Taint = messages.Taint_TAINT_FOREIGN
	unsaid := of(owner)
	unsaid.Taint = messages.Taint_TAINT_UNSPECIFIED
	recalled := of(owner)
	recalled.Taint = messages.Taint_TAINT_RECALLED
	resident := of(owner)
	resident.Agent = "main/resident/cook"
	lone := of(cook)
	lone.Agent = "main/resident/cook"
	none := []messages.Verdict{deny, deny, deny, deny, deny, deny, deny}
	guests := []messages.Verdict{allow, ask, deny, allow, ask, deny, allow}
	owners := []messages.Verdict{allow, allow, ask, allow, allow, ask, allow}
	for name, c := range map[string]struct {
		check *messages.CheckCalls
		want  []messages.Verdict
	}{
		"owner":            {of(owner), owners},
		"person":           {of(guest), guests},
		"token":            {of(robot), guests},
		"node":             {of(kind(messages.PrincipalKind_PRINCIPAL_KIND_NODE)), guests},
		"system":           {of(kind(messages.PrincipalKind_PRINCIPAL_KIND_SYSTEM)), []messages.Verdict{allow, ask, ask, allow, allow, ask, allow}},
		"resident":         {lone, owners},
		"nobody":           {of(), none},
		"without an id":    {of(nobody), none},
		"owner without id": {of(&messages.Principal{Kind: messages.PrincipalKind_PRINCIPAL_KIND_OWNER}), none},
		"another kind":     {of(kind(99)), none},
		"owner and guest":  {of(owner, guest), guests},
		"guest and owner":  {of(guest, owner), guests},
		"owner and nobody": {of(owner, nobody), none},
		"foreign":          {foreign, []messages.Verdict{allow, ask, ask, ask, ask, ask, allow}},
		"taint not said":   {unsaid, []messages.Verdict{allow, ask, ask, ask, ask, ask, allow}},
		"recalled":         {recalled, owners},
		"resident of own":  {resident, owners},
	} {
		for i, class := range classes() {
			if got := ruled(c.check, tool("x", class)); got.verdict != c.want[i] || got.verdict != allow && got.reason == "" {
				t.Errorf("%s, %v: %v (%s), want %v", name, class, got.verdict, got.reason, c.want[i])
			}
		}
	}
}

// TestIntersection takes every pair of kinds: nobody gains a right by somebody else's joining.
func TestIntersection(t *testing.T) {
	var kinds []*messages.Principal
	for k := range messages.PrincipalKind_name {
		kinds = append(kinds, &messages.Principal{Id: "x", Kind: messages.PrincipalKind(k)})
	}
	for _, a := range kinds {
		for _, b := range kinds {
			for _, class := range classes() {
				both := ruled(of(a, b), tool("x", class)).verdict
				one, other := ruled(of(a), tool("x", class)).verdict, ruled(of(b), tool("x", class)).verdict
				if want := max(one, other); both != want {
					t.Errorf("%v with %v, %v: %v, want %v", a.GetKind(), b.GetKind(), class, both, want)
				}
			}
		}
	}
}

func TestOverrides(t *testing.T) {
	key := configs.GuardPrefix + "tool.x"
	foreign := of(owner)
	foreign.Taint = messages.Taint_TAINT_FOREIGN
	for _, c := range []struct {
		name  string
		check *messages.CheckCalls
		class messages.ToolClass
		pairs []string
		want  messages.Verdict
	}{
		{"allow over ask", of(owner), messages.ToolClass_TOOL_CLASS_EXEC, []string{key, "allow"}, allow},
		{"allow over a tainted ask", foreign, messages.ToolClass_TOOL_CLASS_NET, []string{key, "allow"}, allow},
		{"allow never over deny", of(guest), messages.ToolClass_TOOL_CLASS_EXEC, []string{key, "allow"}, deny},
		{"ask over allow", of(owner), messages.ToolClass_TOOL_CLASS_READ, []string{key, "ask"}, ask},
		{"ask under deny", of(guest), messages.ToolClass_TOOL_CLASS_EXEC, []string{key, "ask"}, deny},
		{"deny", of(owner), messages.ToolClass_TOOL_CLASS_READ, []string{key, "deny"}, deny},
		{"deny for a name in capitals", of(owner), messages.ToolClass_TOOL_CLASS_READ, []string{key, "deny"}, deny},
		{"set back", of(owner), messages.ToolClass_TOOL_CLASS_READ, []string{key, ""}, allow},
		{"no rule", of(owner), messages.ToolClass_TOOL_CLASS_READ, []string{configs.GuardKey("owner", "read"), ""}, deny},
		{"a rule that is none", of(owner), messages.ToolClass_TOOL_CLASS_READ, []string{configs.GuardKey("owner", "read"), "maybe"}, deny},
		{"a class that is not said", of(guest), messages.ToolClass_TOOL_CLASS_UNSPECIFIED, nil, ask},
		{"a class that is not known", of(guest), messages.ToolClass(99), nil, ask},
	} {
		if got := ruled(c.check, tool("x", c.class), c.pairs...); got.verdict != c.want {
			t.Errorf("%s: %v (%s), want %v", c.name, got.verdict, got.reason, c.want)
		}
	}
	resident := of(owner)
	resident.Agent = "main/resident/cook"
	strict := []string{configs.GuardKey("agent", "read"), "deny"}
	if got := ruled(resident, tool("x", messages.ToolClass_TOOL_CLASS_READ), strict...); got.verdict != deny {
		t.Errorf("a resident on behalf of the owner is ruled as the owner alone: %v", got)
	}
	if got := ruled(of(owner), tool("x", messages.ToolClass_TOOL_CLASS_READ), strict...); got.verdict != allow {
		t.Errorf("the rule of residents holds for main: %v", got)
	}
	var v kit.Values
	v.Take(policy(key, "deny"))
	if got := rule(&v, of(owner), call("c", "X", "{}"), tool("X", messages.ToolClass_TOOL_CLASS_READ)); got.verdict != deny {
		t.Errorf("a name in capitals passes: %v", got)
	}
}

func TestCallsThatCannotRun(t *testing.T) {
	var v kit.Values
	v.Take(policy())
	invalid := call("c", "x", "{")
	invalid.Invalid = "not_json"
	refused := call("c", "x", "{}")
	refused.Denied = "A stage says no."
	read := tool("x", messages.ToolClass_TOOL_CLASS_READ)
	for name, r := range map[string]ruling{
		"invalid": rule(&v, of(owner), invalid, read), "denied": rule(&v, of(owner), refused, read),
		"no definition": rule(&v, of(owner), call("c", "x", "{}"), nil), "empty definition": rule(&v, of(owner), call("c", "x", "{}"), &messages.ToolDef{}),
		"of another tool": rule(&v, of(owner), call("c", "x", "{}"), tool("y", messages.ToolClass_TOOL_CLASS_READ)),
	} {
		if r.verdict != deny || r.reason == "" {
			t.Errorf("%s: %v", name, r)
		}
	}
	if r := rule(&v, of(owner), call("c", "x", "{}"), read); r.verdict != allow {
		t.Errorf("one that can: %v", r)
	}
}

// TestHashBindsEverything changes one thing at a time: each makes another hash and another approval.
func TestHashBindsEverything(t *testing.T) {
	hashed := func(change func(*messages.CheckCalls, *messages.ToolInvocation)) (string, string) {
		c := &messages.CheckCalls{TaskId: "T", Agent: "main", Principals: []*messages.Principal{owner}, Channel: "cli", Conversation: "home"}
		i := call("T/1/c0", "x", `{"a":1}`)
		change(c, i)
		return hashOf(c, i), idOf(i.GetCallId(), hashOf(c, i))
	}
	hash, id := hashed(func(*messages.CheckCalls, *messages.ToolInvocation) {})
	if len(hash) != 64 || strings.ToLower(hash) != hash || !strings.HasPrefix(id, "ap-") || len(id) > 20 {
		t.Fatalf("hash %q, id %q", hash, id)
	}
	seen := map[string]string{hash: "nothing"}
	for name, change := range map[string]func(*messages.CheckCalls, *messages.ToolInvocation){
		"tool":         func(_ *messages.CheckCalls, i *messages.ToolInvocation) { i.Name = "y" },
		"arguments":    func(_ *messages.CheckCalls, i *messages.ToolInvocation) { i.ArgumentsJson = []byte(`{"a": 1}`) },
		"agent":        func(c *messages.CheckCalls, _ *messages.ToolInvocation) { c.Agent = "main/resident/x" },
		"principal":    func(c *messages.CheckCalls, _ *messages.ToolInvocation) { c.Principals = []*messages.Principal{guest} },
		"joined":       func(c *messages.CheckCalls, _ *messages.ToolInvocation) { c.Principals = append(c.Principals, guest) },
		"channel":      func(c *messages.CheckCalls, _ *messages.ToolInvocation) { c.Channel = "web" },
		"conversation": func(c *messages.CheckCalls, _ *messages.ToolInvocation) { c.Conversation = "" },
		"task":         func(c *messages.CheckCalls, _ *messages.ToolInvocation) { c.TaskId = "U" },
		"shifted":      func(c *messages.CheckCalls, _ *messages.ToolInvocation) { c.Channel, c.Conversation = "clih", "ome" },
	} {
		got, gotID := hashed(change)
		if other, taken := seen[got]; taken {
			t.Errorf("%s has the hash of %s", name, other)
		}
		if gotID == id {
			t.Errorf("%s has the same id", name)
		}
		seen[got] = name
	}
	same, _ := hashed(func(c *messages.CheckCalls, _ *messages.ToolInvocation) {
		c.Principals = []*messages.Principal{{Id: "owner", Name: "Ada", Kind: owner.GetKind()}, owner}
	})
	if same != hash {
		t.Error("a display name, or one principal twice, changes the hash")
	}
	if _, other := hashed(func(_ *messages.CheckCalls, i *messages.ToolInvocation) { i.CallId = "T/1/c1" }); other == id {
		t.Error("another call has the same id")
	}
}

func TestWhoDecides(t *testing.T) {
	var v kit.Values
	v.Take(policy(configs.KeyGuardDeciders, "person:anna,token:cron,agent:main/resident/cook"))
	for _, p := range []*messages.Principal{owner, guest} {
		if !mayDecide(&v, p) {
			t.Errorf("%v may not", p)
		}
	}
	for _, p := range []*messages.Principal{
		nil, nobody, robot, cook,
		{Id: "person:bob", Kind: guest.GetKind()},
		{Id: "person:anna"},
		{Kind: owner.GetKind()},
		{Id: "owner", Kind: guest.GetKind()},
		{Id: "person:anna", Kind: robot.GetKind()},
	} {
		if mayDecide(&v, p) {
			t.Errorf("%v may", p)
		}
	}
	if !slices.IsSorted([]messages.Verdict{allow, ask, deny}) {
		t.Error("the order of verdicts is not their strictness")
	}
}
