package config

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

func (m *machine) subscribe(e kit.Event, v *messages.ConfigSubscribe) []kit.Effect {
	if e.From == nil {
		return nil // nobody to tell
	}
	s := m.find(e.From)
	if s == nil && len(m.subs) >= m.params.Subscriptions {
		return []kit.Effect{e.Reply(&messages.Error{
			Code: "too_many_subscriptions", Message: "too many actors follow the settings",
			Hint: "see `waiter tree` for actors that are left over",
		})}
	}
	var effects []kit.Effect
	if s == nil {
		s = &subscription{who: e.From}
		m.subs = append(m.subs, s)
		effects = append(effects, kit.Watch{Who: e.From})
	}
	s.prefixes, s.version = slices.Clone(v.GetPrefixes()), 0
	return append(effects, read{Why: reason{Ask: asked(e), Subscribe: true}, Prefixes: s.prefixes}, m.summary())
}

func (m *machine) find(who *messages.Address) *subscription {
	at := slices.IndexFunc(m.subs, func(s *subscription) bool { return proto.Equal(s.who, who) })
	if at < 0 {
		return nil
	}
	return m.subs[at]
}

func (m *machine) drop(who *messages.Address) {
	m.subs = slices.DeleteFunc(m.subs, func(s *subscription) bool { return proto.Equal(s.who, who) })
}

// fitting returns the values whose key starts with one of the prefixes.
func (s *subscription) fitting(values []*messages.ConfigValue) []*messages.ConfigValue {
	var fit []*messages.ConfigValue
	for _, v := range values {
		if fits(s.prefixes, v.GetKey()) {
			fit = append(fit, v)
		}
	}
	return fit
}

// fits reports whether key starts with one of the prefixes; no prefixes means all.
func fits(prefixes []string, key string) bool {
	return len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}

// fault handles a ConfigChanged that was refused. When the subscriber is gone its Ended comes; when it is full the
// subscription is repaired later.
func (m *machine) fault(v kit.Fault) []kit.Effect {
	send, ok := v.Effect.(kit.Send)
	if !ok {
		return []kit.Effect{kit.Log{Level: kit.Warn, Text: "effect failed", Attrs: []any{"code", v.Err.GetCode(), "reason", v.Err.GetMessage()}}}
	}
	s := m.find(send.To)
	if s == nil {
		return nil
	}
	s.version = 0
	if s.repair {
		return nil
	}
	s.repair = true
	return []kit.Effect{kit.After{Key: repairKey(s.who), D: repairAfter, Msg: repair{Who: s.who}}}
}

func (m *machine) repair(v repair) []kit.Effect {
	s := m.find(v.Who)
	if s == nil {
		return nil
	}
	s.repair = false
	if s.version != 0 {
		return nil // subscribed again meanwhile
	}
	return []kit.Effect{read{Why: reason{Ask: ask{To: s.who}, Subscribe: true, Again: true}, Prefixes: s.prefixes}}
}

// repairKey names the timer of one subscriber.
func repairKey(who *messages.Address) string { return "repair " + who.GetNode() + ":" + who.GetPath() }
