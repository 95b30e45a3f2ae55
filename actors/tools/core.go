package tools

import (
	"encoding/json"
	"time"

	"homeagent/messages"
)

// coreTools are the tools that this actor serves itself: what they tell is known here.
func coreTools() []*entry {
	def := &messages.ToolDef{
		Name:           "time_now",
		Description:    "Tells the time now: in UTC, and in the person's time zone with the day of the week.",
		ParametersJson: []byte(`{"type":"object","properties":{},"additionalProperties":false}`),
		Effect:         messages.ToolEffect_TOOL_EFFECT_PURE,
		OnPreempt:      messages.OnPreempt_ON_PREEMPT_FINISH,
		ParallelSafe:   true,
		ToolClass:      messages.ToolClass_TOOL_CLASS_READ,
		Provider:       "core",
	}
	s, err := compile(def.GetParametersJson())
	if err != nil {
		panic(err) // the text above
	}
	return []*entry{{def: def, schema: s, serve: (*machine).timeNow}}
}

func (m *machine) timeNow() string {
	type answer struct {
		UTC     string `json:"utc"`
		Local   string `json:"local"`
		Weekday string `json:"weekday"`
		Zone    string `json:"zone"`
	}
	local := m.now.In(m.p.Zone)
	text, err := json.Marshal(answer{
		UTC: m.now.UTC().Format(time.RFC3339), Local: local.Format(time.RFC3339),
		Weekday: local.Weekday().String(), Zone: m.p.Zone.String(),
	})
	if err != nil {
		panic(err) // strings always encode
	}
	return string(text)
}
