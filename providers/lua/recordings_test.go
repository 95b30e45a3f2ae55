package lua_test

import (
	"os"
	"path/filepath"
	"testing"

	"homeagent/providers"
	"homeagent/providers/lua"
	"homeagent/providers/providertest"
	"homeagent/providers/replay"
)

func engine(t testing.TB, dir string) *lua.Engine {
	t.Helper()
	e, err := lua.New(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// TestRecordings runs the adapters against recorded streams of real servers in
// the folder providers of the data sets, which are no part of the repository;
// the fixtures of TestFixtures, which are always there, are made from the same
// facts.
func TestRecordings(t *testing.T) {
	sets := os.Getenv("HOMEAGENT_DATASETS")
	if sets == "" {
		t.Skip("HOMEAGENT_DATASETS names no folder of data sets")
	}
	e := engine(t, "")
	recs, err := replay.Load(filepath.Join(sets, "providers"), func(name string) providers.Info { return e.Info(replay.AdapterFor(name, e.Knows)) })
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range recs {
		providertest.RunRecordings(t, e, replay.AdapterFor(rec.Name, e.Knows), []replay.Recording{rec})
	}
}

// TestFixtures runs the fixtures of each family through the adapter of its name.
func TestFixtures(t *testing.T) {
	for _, family := range providertest.Families() {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			recs, err := providertest.Fixtures(family)
			if err != nil {
				t.Fatal(err)
			}
			if len(recs) == 0 {
				t.Skip("only requests")
			}
			providertest.RunRecordings(t, engine(t, ""), family, recs)
		})
	}
}

// TestRequests runs the request fixtures of each family.
func TestRequests(t *testing.T) {
	for _, family := range providertest.Families() {
		t.Run(family, func(t *testing.T) { providertest.RunRequests(t, engine(t, ""), family) })
	}
}

// TestEmbedded checks that every adapter that is built in keeps the contract.
func TestEmbedded(t *testing.T) {
	e := engine(t, "")
	list := e.List()
	if len(list) < 10 {
		t.Fatalf("only %d adapters", len(list))
	}
	for _, s := range list {
		if s.Err != "" {
			t.Error(s.Err)
			continue
		}
		if err := e.Try(t.Context(), s.Info.Name); err != nil {
			t.Errorf("%s: %v", s.Info.Name, err)
		}
	}
}
