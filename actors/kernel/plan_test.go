package kernel

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"homeagent/actors/kit"
	"homeagent/configs"
)

func row(kind string, requires, provides []kit.Facility) Row {
	return Row{Kind: kind, Paths: []string{kind}, Requires: requires, Provides: provides}
}

func need(names ...kit.Facility) []kit.Facility { return names }

func kindsOf(layers [][]Row) [][]string {
	var out [][]string
	for _, l := range layers {
		var kinds []string
		for _, r := range l {
			kinds = append(kinds, r.Kind)
		}
		out = append(out, kinds)
	}
	return out
}

func TestPlan(t *testing.T) {
	spawned := Row{Kind: "turn", Requires: need("tools")}
	layers, err := Plan([]Row{
		row("agents", need("ledger", "memory"), need("agent")),
		row("memory", need("ledger"), need("memory")),
		row("ledger", nil, need("ledger")),
		row("tools", nil, need("tools")),
		spawned,
	})
	if err != nil {
		t.Fatal(err)
	}
	got := kindsOf(layers)
	want := [][]string{{"ledger", "tools"}, {"memory"}, {"agents"}}
	if len(got) != len(want) {
		t.Fatalf("layers %v, want %v", got, want)
	}
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("layer %d: %v, want %v", i, got[i], want[i])
		}
	}
}

func TestStructuralErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		rows  []Row
		fault string
		says  []string
	}{
		{
			"missing",
			[]Row{row("a", need("legder"), need("a")), row("b", nil, need("ledger"))},
			"missing",
			[]string{`"legder"`, "a requires", `did you mean "ledger"?`, "declared: a, ledger"},
		},
		{
			"double",
			[]Row{row("a", nil, need("x")), row("b", nil, need("x"))},
			"double",
			[]string{`"x"`, "a and by b", "declared: x"},
		},
		{
			"circular",
			[]Row{row("a", need("b"), need("a")), row("b", need("c"), need("b")), row("c", need("a"), need("c"))},
			"circular",
			[]string{"a -> b -> c -> a", "declared: a, b, c"},
		},
		{
			"itself",
			[]Row{row("a", need("a"), need("a"))},
			"circular",
			[]string{"a -> a"},
		},
		{
			"missing of a kind without a path",
			[]Row{{Kind: "turn", Requires: need("nothing")}},
			"missing",
			[]string{`"nothing"`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Plan(c.rows)
			var e *StructureError
			if !errors.As(err, &e) || e.Fault != c.fault {
				t.Fatalf("got %v, want a fault %q", err, c.fault)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
		})
	}
}

func TestTheTable(t *testing.T) {
	rows := Table()
	if _, err := Plan(rows); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.Kind] {
			t.Errorf("kind %q has two rows", r.Kind)
		}
		seen[r.Kind] = true
		if r.Restart.StopTimeout == 0 {
			t.Errorf("kind %q has no stop timeout", r.Kind)
		}
		if len(r.Paths) > 0 && len(r.Provides) == 0 {
			t.Errorf("kind %q stands at %v and provides nothing", r.Kind, r.Paths)
		}
	}
	var a, b strings.Builder
	if err := Graph(&a); err != nil {
		t.Fatal(err)
	}
	if err := Graph(&b); err != nil {
		t.Fatal(err)
	}
	if a.String() != b.String() || !strings.Contains(a.String(), "digest ") {
		t.Errorf("the graph is not the same twice, or has no digest:\n%s", a.String())
	}
}

func TestPromptTokens(t *testing.T) {
	open := func(environ ...string) *configs.Snapshot {
		r, err := configs.Open(configs.Options{
			Values: configs.NewMapKV(), Secrets: configs.NewMapKV(), Vault: configs.NewVault(t.TempDir() + "/key"), Environ: environ,
		})
		if err != nil {
			t.Fatal(err)
		}
		return r.Snapshot()
	}
	source := func(name, window string) []string {
		key := "HOMED_CORE_LLM_SOURCES_" + name
		return []string{key + "_ADAPTER=openai", key + "_CONTEXT_WINDOW=" + window}
	}
	for _, c := range []struct {
		name           string
		environ        []string
		prompt, window int
		guessed        string
	}{
		{"no source", nil, 600_000, 0, ""},
		{"offline", []string{"HOMED_CORE_LLM_SOURCES_A_ADAPTER=offline"}, 600_000, 0, ""},
		{"one", source("A", "200000"), 160_000, 200_000, ""},
		{"unknown", source("A", "0"), 25_600, 32_000, "a"},
		{"unknown beside a small one", append(source("A", "0"), source("B", "8000")...), 6400, 8000, "a"},
		{"the smallest", append(source("BIG", "128000"), source("SMALL", "8000")...), 6400, 8000, ""},
		{"huge", source("A", "2000000"), 600_000, 2_000_000, ""},
		{"ratio and limit", append(source("A", "100000"), "HOMED_CORE_AGENT_CONTEXT_RATIO=0.5", "HOMED_CORE_AGENT_CONTEXT_LIMIT=40000"), 40_000, 100_000, ""},
		{"ratio", append(source("A", "100000"), "HOMED_CORE_AGENT_CONTEXT_RATIO=0.5"), 50_000, 100_000, ""},
		{"switched off", append(source("A", "100000"), append(source("OFF", "1000"), "HOMED_CORE_LLM_SOURCES_OFF_ENABLED=false")...), 80_000, 100_000, ""},
	} {
		prompt, window, guessed := promptTokens(open(c.environ...))
		if prompt != c.prompt || window != c.window || strings.Join(guessed, " ") != c.guessed {
			t.Errorf("%s: %d tokens of %d, guessed %v", c.name, prompt, window, guessed)
		}
	}
}
