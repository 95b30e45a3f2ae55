package lua_test

import (
	"os"
	"path/filepath"
	"testing"

	"homeagent/providers/lua"
	"homeagent/providers/providertest"
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
	recs, err := providertest.LoadRecordings(filepath.Join(sets, "providers"), "openai-chat/", "azure-openai/", "compat-", "openrouter/", "mistral/")
	if err != nil {
		t.Fatal(err)
	}
	providertest.RunRecordings(t, engine(t, ""), "openai", recs)
}

func TestFixtures(t *testing.T) {
	recs, err := providertest.Fixtures("openai")
	if err != nil {
		t.Fatal(err)
	}
	providertest.RunRecordings(t, engine(t, ""), "openai", recs)
}
