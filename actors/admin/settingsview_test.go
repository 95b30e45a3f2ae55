package admin

import (
	"encoding/json"
	"testing"

	"homeagent/messages"
)

func TestValuesShowWhatTheNextStartBrings(t *testing.T) {
	v := &messages.ConfigValue{Key: "core.n", Type: "int", Value: "2000", Default: "2000", Pending: "500"}
	for waiting, want := range map[bool]string{
		false: `{"key":"core.n","value":2000,"origin":"","type":"int","default":2000,"live":false}`,
		true:  `{"key":"core.n","value":2000,"origin":"","type":"int","default":2000,"live":false,"pending":500}`,
	} {
		v.Waiting = waiting
		if got, err := json.Marshal(value(v)); err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}
