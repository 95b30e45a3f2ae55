package recall

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"homeagent/memory/contextmem"
	"homeagent/memory/embed"
)

func words(t *testing.T) *embed.Words {
	t.Helper()
	path := filepath.Join(t.TempDir(), "words.vec")
	table := "7 3\nautomobile 1 0 0\ncar 1 0.1 0\nrepair 0 0 1\nmended 0 0.1 1\noak 0 1 0\n汽车 1 0 0.1\npasta 0.5 0.5 0.5\n"
	if err := os.WriteFile(path, []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := embed.Load(path, embed.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// With word vectors memory finds what was said in other words; what is said later is found at once; without them it is as
// before.
func TestFoundByMeaning(t *testing.T) {
	m := open(t, "")
	m.say("main", "the automobile was mended on Monday")
	m.say("main", "an oak fell over")
	ask := func(text string) []string {
		t.Helper()
		zero := 0.0
		return texts(m.ask(Question{Text: text, Floor: &zero, All: true}))
	}
	const want = "the automobile was mended on Monday"
	if got := ask("my car needs a repair"); slices.Contains(got, want) {
		t.Fatalf("without vectors: %q", got)
	}
	meaning := NewMeaning(m.db, words(t))
	if err := meaning.Learn(context.Background()); err != nil || meaning.Len() != 2 {
		t.Fatalf("%d learnt, %v", meaning.Len(), err)
	}
	m.engine.SetMeaning(meaning)
	if got := ask("my car needs a repair"); len(got) == 0 || got[0] != want {
		t.Errorf("with vectors: %q", got)
	}
	m.say("main", "我的汽车是红色的")
	if got := ask("a car"); !slices.Contains(got, "我的汽车是红色的") || meaning.Len() != 3 {
		t.Errorf("said later: %q of %d", got, meaning.Len())
	}
	look, err := m.engine.figures(contextmem.New(m.db, nil), "main")
	if err != nil || look.GetVectors() != 3 || look.GetVectorSpace() != words(t).Space().Fingerprint {
		t.Errorf("figures %v, %v", look, err)
	}
	m.engine.SetMeaning(nil)
	if got := ask("my car needs a repair"); slices.Contains(got, want) {
		t.Errorf("turned off: %q", got)
	}
}
