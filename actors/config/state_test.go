package config

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/actors/kit/kittest"
	"homeagent/messages"
)

func start() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) }

func from(path, corr string, m proto.Message) kit.Event {
	return kit.Event{From: &messages.Address{Path: path, Epoch: 7}, Corr: corr, Msg: m}
}

func own(m any) kit.Event { return kit.Event{Msg: m} }

func value(key, text string) *messages.ConfigValue {
	return &messages.ConfigValue{Key: key, Value: text, Origin: "stored"}
}

func setTo(pairs ...string) *messages.ConfigSet {
	set := &messages.ConfigSet{Principal: &messages.Principal{Id: "owner"}}
	for i := 0; i < len(pairs); i += 2 {
		set.Entries = append(set.Entries, &messages.ConfigEntry{Key: pairs[i], Value: proto.String(pairs[i+1])})
	}
	return set
}

// readOf is the read among effects, for its result.
func readOf(t *testing.T, effects []kit.Effect) read {
	t.Helper()
	for _, e := range effects {
		if r, ok := e.(read); ok {
			return r
		}
	}
	t.Fatalf("no read in %v", effects)
	return read{}
}

func begin(t *testing.T, name string, p Params) *kittest.Script {
	s := kittest.New(t, name, New(p), start())
	s.Step(0, own(kit.Started{Self: &messages.Address{Path: "config", Epoch: 7}}))
	return s
}

func TestStartTellsOfProblems(t *testing.T) {
	s := begin(t, "start", Params{})
	s.Step(time.Millisecond, own(surveyed{Version: 1, Keys: 40, Problems: []problem{{
		Key: "core.agent.queue_limit", Origin: "stored",
		Err: &messages.Error{Code: "bad_value", Message: "core.agent.queue_limit: \"0\" is below the minimum 1", Hint: "use 1"},
	}}}))
	s.Done()
}

func TestReads(t *testing.T) {
	s := begin(t, "reads", Params{})
	s.Step(0, own(surveyed{Version: 1, Keys: 40}))
	list := s.Step(0, from("admin", "c1", &messages.ConfigList{Prefix: "core.agent."}))
	get := s.Step(0, from("admin", "c2", &messages.ConfigGet{Key: "core.agent.nam"}))
	s.Note("the answers come as the workers end")
	s.Step(0, own(values{Why: readOf(t, get).Why, Version: 1, Err: &messages.Error{
		Code: "unknown_key", Message: "there is no key \"core.agent.nam\"", Hint: "did you mean core.agent.name?",
	}}))
	s.Step(0, own(values{Why: readOf(t, list).Why, Version: 1, List: []*messages.ConfigValue{value("core.agent.name", "Hearth")}}))
	s.Note("no key at all")
	s.Step(0, from("admin", "c3", &messages.ConfigGet{}))
	s.Done()
}

func TestSetsAreWrittenInTurn(t *testing.T) {
	s := begin(t, "sets", Params{Waiting: 1})
	s.Step(0, own(surveyed{Version: 1, Keys: 40}))
	s.Step(0, from("admin", "c1", setTo("core.agent.name", "A")))
	s.Step(0, from("admin", "c2", setTo("core.agent.name", "B", "core.admin.event_ring", "500")))
	s.Note("one more than may wait")
	s.Step(0, from("admin", "c3", setTo("core.agent.name", "C")))
	s.Note("the first is on disk")
	s.Step(2*time.Millisecond, own(written{
		Shown: []*messages.ConfigValue{value("core.agent.name", "A")}, Changed: []*messages.ConfigValue{value("core.agent.name", "A")}, Version: 2,
	}))
	s.Note("the second fails: nothing changed, nobody is told")
	s.Step(2*time.Millisecond, own(written{Version: 2, Err: &messages.Error{Code: "bad_value", Message: "no", Hint: "use less"}}))
	s.Note("a restart key alone changes nothing in force")
	s.Step(0, from("admin", "c4", setTo("core.admin.event_ring", "500")))
	s.Step(0, own(written{Shown: []*messages.ConfigValue{value("core.admin.event_ring", "2000")}, Restart: []string{"core.admin.event_ring"}, Version: 3}))
	s.Note("an empty set")
	s.Step(0, from("admin", "c5", &messages.ConfigSet{}))
	s.Done()
}

func TestSubscription(t *testing.T) {
	s := begin(t, "subscription", Params{Subscriptions: 2})
	s.Step(0, own(surveyed{Version: 1, Keys: 40}))
	agent := s.Step(0, from("agents/main", "c1", &messages.ConfigSubscribe{Prefixes: []string{"core.agent.", "core.tools."}}))
	s.Step(0, own(values{
		Why: readOf(t, agent).Why, Prefixes: []string{"core.agent.", "core.tools."}, Version: 1,
		List: []*messages.ConfigValue{value("core.agent.name", "Home")},
	}))
	everything := s.Step(0, from("plugins", "c2", &messages.ConfigSubscribe{}))
	s.Note("a change overtakes the first reading of plugins: it is read again")
	s.Step(0, from("admin", "c3", setTo("core.agent.name", "A", "core.daemon.log_level", "debug")))
	s.Step(0, own(written{Version: 2, Changed: []*messages.ConfigValue{value("core.agent.name", "A"), value("core.daemon.log_level", "debug")}}))
	again := s.Step(0, own(values{Why: readOf(t, everything).Why, Version: 1, List: []*messages.ConfigValue{value("core.agent.name", "Home")}}))
	s.Step(0, own(values{Why: readOf(t, again).Why, Version: 2, List: []*messages.ConfigValue{value("core.agent.name", "A")}}))
	s.Note("each is told of what fits, once")
	s.Step(0, from("admin", "c4", setTo("core.daemon.log_level", "warn")))
	s.Step(0, own(written{Version: 3, Changed: []*messages.ConfigValue{value("core.daemon.log_level", "warn")}}))
	s.Note("one more than may be")
	s.Step(0, from("guard", "c5", &messages.ConfigSubscribe{}))
	s.Show()
	s.Note("a subscriber ends")
	s.Step(0, own(kit.Ended{Who: &messages.Address{Path: "plugins", Epoch: 7}}))
	s.Step(0, from("admin", "c6", setTo("core.daemon.log_level", "info")))
	s.Step(0, own(written{Version: 4, Changed: []*messages.ConfigValue{value("core.daemon.log_level", "info")}}))
	s.Done()
}

func TestAReadingTakenAfterAChangeIsNotToldTwice(t *testing.T) {
	s := begin(t, "newer", Params{})
	s.Step(0, own(surveyed{Version: 1, Keys: 40}))
	agent := s.Step(0, from("agents/main", "c1", &messages.ConfigSubscribe{}))
	s.Step(0, from("admin", "c2", setTo("core.agent.name", "A")))
	s.Note("the reading saw the change, whose own result comes later")
	s.Step(0, own(values{Why: readOf(t, agent).Why, Version: 2, List: []*messages.ConfigValue{value("core.agent.name", "A")}}))
	s.Step(0, own(written{Version: 2, Changed: []*messages.ConfigValue{value("core.agent.name", "A")}}))
	s.Done()
}

func TestAFullSubscriberIsRepaired(t *testing.T) {
	s := begin(t, "repair", Params{})
	s.Step(0, own(surveyed{Version: 1, Keys: 40}))
	agent := s.Step(0, from("agents/main", "c1", &messages.ConfigSubscribe{}))
	s.Step(0, own(values{Why: readOf(t, agent).Why, Version: 1}))
	s.Step(0, from("admin", "c2", setTo("core.agent.name", "A")))
	sent := s.Step(0, own(written{Version: 2, Changed: []*messages.ConfigValue{value("core.agent.name", "A")}}))
	full := kit.Event{Msg: kit.Fault{Effect: sent[0], Err: &messages.Error{Code: "mailbox_full", Message: "full"}}}
	s.Step(0, full)
	s.Note("what comes meanwhile is in the repair")
	s.Step(0, from("admin", "c3", setTo("core.agent.name", "B")))
	s.Step(0, own(written{Version: 3, Changed: []*messages.ConfigValue{value("core.agent.name", "B")}}))
	repaired := s.Step(time.Second, own(repair{Who: &messages.Address{Path: "agents/main", Epoch: 7}}))
	s.Step(0, own(values{Why: readOf(t, repaired).Why, Version: 3, List: []*messages.ConfigValue{value("core.agent.name", "B")}}))
	s.Done()
}

func TestStopAnswersWhatWaits(t *testing.T) {
	s := begin(t, "stop", Params{})
	s.Step(0, own(surveyed{Version: 1, Keys: 40}))
	s.Step(0, from("admin", "c1", setTo("core.agent.name", "A")))
	s.Step(0, from("admin", "c2", setTo("core.agent.name", "B")))
	s.Step(0, own(kit.Stopping{}))
	s.Done()
}

func TestUnknownMessagesAreLogged(t *testing.T) {
	m := New(Params{})
	effects := m.Step(start(), own(&messages.Ok{}))
	if len(effects) != 1 {
		t.Fatalf("effects %v", effects)
	}
	if log, ok := effects[0].(kit.Log); !ok || !strings.Contains(log.Attrs[1].(string), "Ok") {
		t.Errorf("effect %v", effects[0])
	}
	if again := m.Step(start(), own(&messages.Ok{})); len(again) != 0 {
		t.Errorf("logged twice: %v", again)
	}
}
