package configs_test

import (
	"testing"

	"homeagent/configs"
)

func TestGuardKeys(t *testing.T) {
	s := newNode(t, "HOMED_CORE_GUARD_TOOL_WEB_FETCH=deny").Snapshot()
	for key, want := range map[string]string{
		configs.GuardKey("owner", "write"):               configs.GuardAllow,
		configs.GuardKey("owner", "exec"):                configs.GuardAsk,
		configs.GuardKey("person", "write"):              configs.GuardAsk,
		configs.GuardKey("token", "exec"):                configs.GuardDeny,
		configs.GuardKey("stranger", "read"):             configs.GuardDeny,
		configs.GuardKey("stranger", "memory"):           configs.GuardDeny,
		configs.GuardKey(configs.GuardTainted, "net"):    configs.GuardAsk,
		configs.GuardKey(configs.GuardTainted, "memory"): configs.GuardAllow,
		configs.GuardPrefix + "tool.web_fetch":           configs.GuardDeny,
		configs.GuardKey("system", "write"):              configs.GuardAsk,
		configs.GuardKey("agent", "device"):              configs.GuardAsk,
	} {
		if got := s.String(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	n := newNode(t)
	_, err := n.Set(nil, configs.Edit{Key: "core.guard.owner.exec", Value: "maybe"})
	wantError(t, err, configs.CodeBadValue, "allow")
	for _, bad := range []string{"anna", "person:", "person:a b"} {
		_, err = n.Set(nil, configs.Edit{Key: configs.KeyGuardDeciders, Value: bad})
		wantError(t, err, configs.CodeBadValue, "person:anna")
	}
	n.set(configs.KeyGuardDeciders, "person:anna, telegram:1234")
	if got := n.Snapshot().List(configs.KeyGuardDeciders); len(got) != 2 {
		t.Errorf("deciders %q", got)
	}
}
