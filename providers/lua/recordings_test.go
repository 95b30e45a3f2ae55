package lua_test

import (
	"os"
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
// the folder named by PROVIDER_RECORDINGS; the fixtures of TestFixtures, which
// are always there, are made from the same facts.
func TestRecordings(t *testing.T) {
	dir := os.Getenv("PROVIDER_RECORDINGS")
	if dir == "" {
		t.Skip("PROVIDER_RECORDINGS names no folder")
	}
	recs, err := providertest.LoadRecordings(dir, "openai-chat/", "azure-openai/", "compat-", "openrouter/", "mistral/")
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
