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
	rows := table()
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
	if n := promptTokens(open()); n != 480_000 {
		t.Errorf("by default %d", n)
	}
	n := promptTokens(open(
		"HOMED_CORE_LLM_SOURCES_BIG_ADAPTER=openai", "HOMED_CORE_LLM_SOURCES_BIG_CONTEXT_WINDOW=128000",
		"HOMED_CORE_LLM_SOURCES_SMALL_ADAPTER=openai", "HOMED_CORE_LLM_SOURCES_SMALL_CONTEXT_WINDOW=8000",
		"HOMED_CORE_LLM_SOURCES_OFF_ADAPTER=openai", "HOMED_CORE_LLM_SOURCES_OFF_CONTEXT_WINDOW=1000",
		"HOMED_CORE_LLM_SOURCES_OFF_ENABLED=false",
	))
	if n != 6400 {
		t.Errorf("with a small source %d", n)
	}
}
