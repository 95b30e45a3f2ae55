package tools

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homeagent/messages"
)

const weather = `{"type":"object","required":["city"],"additionalProperties":false,"properties":{
	"city":{"type":"string"},"days":{"type":"integer","minimum":1},"metric":{"type":"boolean"},"factor":{"type":"number"},
	"either":{"type":["integer","string"]},"kind":{"enum":["now","later"]},
	"places":{"type":"array","items":{"type":"integer"}},"nested":{"$ref":"#/$defs/n"}},
	"$defs":{"n":{"type":"object","properties":{"on":{"type":"boolean"},"n":{"$ref":"#/$defs/n"}}}}}`

func TestCheck(t *testing.T) {
	s, err := compile([]byte(weather))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, want    string // want empty: refused
		reason, field string
	}{
		{args: `{"city":"Ulm"}`, want: `{"city":"Ulm"}`},
		{args: ` { "city" : "Ulm" } `, want: ` { "city" : "Ulm" } `},
		{args: `{"city":"Ulm","days":3,"factor":12345678901234567890}`, want: `{"city":"Ulm","days":3,"factor":12345678901234567890}`},
		{args: `{"city":"Ulm","days":"3"}`, want: `{"city":"Ulm","days":3}`},
		{args: `{"city":"Ulm","metric":"true"}`, want: `{"city":"Ulm","metric":true}`},
		{args: `{"city":"Ulm","metric":"False"}`, want: `{"city":"Ulm","metric":false}`},
		{args: `{"city":"Ulm","places":"[1, \"2\"]"}`, want: `{"city":"Ulm","places":[1,2]}`},
		{args: `{"city":"Ulm","factor":"-1.5e3"}`, want: `{"city":"Ulm","factor":-1.5e3}`},
		{args: `{"city":"Ulm","either":"5","days":"2"}`, want: `{"city":"Ulm","days":2,"either":"5"}`},
		{args: `{"city":"Ulm","places":["1",2]}`, want: `{"city":"Ulm","places":[1,2]}`},
		{args: `{"city":"Ulm","nested":{"n":{"on":"false"}}}`, want: `{"city":"Ulm","nested":{"n":{"on":false}}}`},
		{args: ``, reason: reasonRequired, field: "city"},
		{args: `{}`, reason: reasonRequired, field: "city"},
		{args: `{"city":5}`, reason: reasonType, field: "city"},
		{args: `{"city":"Ulm","days":"many"}`, reason: reasonType, field: "days"},
		{args: `{"city":"Ulm","days":"2.5"}`, reason: reasonType, field: "days"},
		{args: `{"city":"Ulm","days":0}`, reason: reasonType, field: "days"},
		{args: `{"city":"Ulm","days":"NaN"}`, reason: reasonType, field: "days"},
		{args: `{"city":"Ulm","metric":"yes"}`, reason: reasonType, field: "metric"},
		{args: `{"city":"Ulm","kind":"never"}`, reason: reasonType, field: "kind"},
		{args: `{"city":"Ulm","extra":1}`, reason: reasonType},
		{args: `{"city":"Ulm","places":[1,"x"]}`, reason: reasonType, field: "places.1"},
		{args: `{"city":`, reason: reasonType},
		{args: `{"city":"Ulm"} x`, reason: reasonType},
		{args: `[]`, reason: reasonType},
		{args: `null`, reason: reasonType},
		{args: `"{\"city\":\"Ulm\"}"`, reason: reasonType},
	} {
		got, fault := check(s, []byte(c.args))
		switch {
		case c.want != "" && (fault != nil || string(got) != c.want):
			t.Errorf("%s: got %s, %v", c.args, got, fault)
		case c.want == "" && (fault.GetReason() != c.reason || fault.GetField() != c.field || fault.GetDetail() == ""):
			t.Errorf("%s: got %s, %v; want %s %s", c.args, got, fault, c.reason, c.field)
		}
	}
}

func TestExplainIsStable(t *testing.T) {
	s, err := compile([]byte(weather))
	if err != nil {
		t.Fatal(err)
	}
	first := ""
	for range 50 {
		_, fault := check(s, []byte(`{"days":"x","metric":3,"factor":[],"kind":1,"places":2}`))
		if first == "" {
			first = fault.GetDetail()
		}
		if fault.GetDetail() != first || fault.GetReason() != reasonRequired {
			t.Fatalf("got %v, before %q", fault, first)
		}
	}
	if !strings.Contains(first, "And 3 more.") {
		t.Errorf("detail %q", first)
	}
}

func TestCompile(t *testing.T) {
	for text, ok := range map[string]bool{
		``: true, `{}`: true, `{"type":"object"}`: true,
		`[]`: false, `{"type":"string"}`: false, `{"type":"object","properties":5}`: false, `not json`: false,
		`{"$ref":"https://example.org/x.json"}`: false, `{"$ref":"file:///etc/passwd"}`: false,
		`{"type":"object","properties":{"a":{"pattern":"("}}}`: false,
	} {
		if _, err := compile([]byte(text)); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	file := filepath.Join(t.TempDir(), "s.json")
	if err := os.WriteFile(file, []byte(`{"type":"object"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := compile([]byte(`{"$ref":"file://` + filepath.ToSlash(file) + `"}`)); err == nil {
		t.Error("a schema read a file of the node")
	}
}

// Whatever a model sends: no panic; what is let through is an object that fits, what is not has a reason.
func FuzzCheck(f *testing.F) {
	s, err := compile([]byte(weather))
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{`{"city":"Ulm","days":"3"}`, `{"nested":{"n":{"n":{"on":"true"}}}}`, `{`, `{"city":1e999}`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		got, fault := check(s, args)
		if fault != nil {
			if fault.GetReason() == "" || fault.GetDetail() == "" {
				t.Errorf("%q was refused without a reason: %v", args, fault)
			}
			return
		}
		var object map[string]any
		if json.Unmarshal(got, &object) != nil && !strings.Contains(string(got), "e") {
			t.Errorf("%q let %q through", args, got)
		}
		if again, fault := check(s, got); fault != nil || string(again) != string(got) {
			t.Errorf("%q became %q, which does not fit: %v", args, got, fault)
		}
	})
}

// A provider's schema is foreign too.
func FuzzCompile(f *testing.F) {
	f.Add([]byte(weather), []byte(`{"city":"x"}`))
	f.Add([]byte(`{"$ref":"#"}`), []byte(`{"a":{}}`))
	f.Fuzz(func(_ *testing.T, schema, args []byte) {
		if s, err := compile(schema); err == nil {
			check(s, args)
		}
	})
}

func TestVisible(t *testing.T) {
	for _, c := range []struct {
		def   *messages.ToolDef
		agent string
		want  bool
	}{
		{&messages.ToolDef{}, "main", true},
		{&messages.ToolDef{}, "main/resident/cook", true},
		{&messages.ToolDef{MainOnly: true}, "main", true},
		{&messages.ToolDef{MainOnly: true}, "main/resident/cook", false},
		{&messages.ToolDef{ResidentOnly: true}, "main", false},
		{&messages.ToolDef{ResidentOnly: true}, "main/resident/cook", true},
		{&messages.ToolDef{Agent: "main/resident/cook"}, "main/resident/cook", true},
		{&messages.ToolDef{Agent: "main/resident/cook"}, "main/resident/maid", false},
	} {
		if got := visible(c.def, c.agent); got != c.want {
			t.Errorf("%v for %s: %v", c.def, c.agent, got)
		}
	}
}
