package graphmem

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cayleygraph/cayley/graph"
	"github.com/cayleygraph/quad"
	"github.com/hidal-go/hidalgo/kv/flat"

	"homeagent/memory/store"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func openGraph(t testing.TB) *Graph {
	t.Helper()
	g, err := Open(openStore(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// fact makes a fact learned at noon plus its number of hours.
func fact(n int, subject, predicate, object string) Fact {
	return Fact{
		ID: fmt.Sprintf("F%05d", n), Subject: subject, Predicate: predicate, Object: object,
		LearnedAt: noon.Add(time.Duration(n) * time.Hour), Source: fmt.Sprintf("E%d", n),
	}
}

func mustCommit(t testing.TB, g *Graph, facts ...Fact) []Outcome {
	t.Helper()
	out, err := g.Commit(context.Background(), facts)
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != len(facts) {
		t.Fatalf("%d outcomes for %d facts", len(out), len(facts))
	}
	return out
}

// say lists what is known about name as "subject predicate object".
func say(t testing.TB, g *Graph, name string, q Query) []string {
	t.Helper()
	found, _, err := g.About(context.Background(), []string{Key(name)}, q)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range found {
		out = append(out, f.Subject+" "+f.Predicate+" "+f.Object)
	}
	slices.Sort(out)
	return out
}

func mustCheck(t testing.TB, g *Graph) Counts {
	t.Helper()
	c, err := g.Check(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if !c.Sound() || c.Log == 0 {
		t.Fatalf("unsound graph: %+v", c)
	}
	return c
}

func TestFactsComeBackAsGiven(t *testing.T) {
	g := openGraph(t)
	f := Fact{
		ID: "F1", Subject: "我妹妹", Predicate: "生日", Object: "5月2日", Functional: true, LearnedAt: noon,
		ValidFrom: noon.Add(-time.Hour), Source: "E1", Principal: "owner", Taint: "trusted", Confidence: 0.75,
		SubjectType: "person", ObjectType: "date",
	}
	mustCommit(t, g, f)
	got, err := g.Fact("F1")
	if err != nil {
		t.Fatal(err)
	}
	if got != f {
		t.Fatalf("got %+v\nwant %+v", got, f)
	}
	if _, err := g.Fact("F2"); !errors.Is(err, ErrNotFound) {
		t.Fatalf("unknown fact: %v", err)
	}
	c := mustCheck(t, g)
	if c.Facts != 1 || len(c.Index) != len(quadIndexes) {
		t.Fatalf("counts %+v", c)
	}
}

func TestFunctionalChangeClosesTheOldFact(t *testing.T) {
	g := openGraph(t)
	berlin := fact(1, "Ann", "lives in", "Berlin")
	berlin.Functional = true
	mustCommit(t, g, berlin, fact(2, "Ann", "likes", "tea"))
	paris := fact(10, "ann", "Lives  in", "Paris")
	paris.Functional = true
	out := mustCommit(t, g, paris, fact(11, "Ann", "likes", "milk"))
	if !slices.Equal(out[0].Closed, []string{"F00001"}) || out[1].Closed != nil {
		t.Fatalf("outcomes %+v", out)
	}
	now := noon.Add(100 * time.Hour)
	if got := say(t, g, "ANN", Query{At: now}); !slices.Equal(got, []string{"Ann likes milk", "Ann likes tea", "ann Lives  in Paris"}) {
		t.Fatalf("now %q", got)
	}
	if got := say(t, g, "Ann", Query{At: noon.Add(5 * time.Hour)}); !slices.Equal(got, []string{"Ann likes tea", "Ann lives in Berlin"}) {
		t.Fatalf("then %q", got)
	}
	if got := say(t, g, "Ann", Query{History: true}); len(got) != 4 {
		t.Fatalf("history %q", got)
	}
	old, err := g.Fact("F00001")
	if err != nil || !old.ValidTo.Equal(paris.LearnedAt) {
		t.Fatalf("closed fact %+v, %v", old, err)
	}
	// History learned late ends where the present fact begins, and ends nothing.
	rome := fact(20, "Ann", "lives in", "Rome")
	rome.Functional, rome.ValidFrom = true, noon.Add(-1000*time.Hour)
	if out := mustCommit(t, g, rome); out[0].Closed != nil {
		t.Fatalf("late history closed %v", out[0].Closed)
	}
	if got, _ := g.Fact("F00020"); !got.ValidTo.Equal(paris.LearnedAt) {
		t.Fatalf("late history ends %v", got.ValidTo)
	}
	mustCheck(t, g)
}

func TestSameStatementIsOneFact(t *testing.T) {
	g := openGraph(t)
	out := mustCommit(t, g, fact(1, "Ann", "likes", "tea"), fact(2, "ANN", "likes", "Ｔｅａ"), fact(1, "x", "y", "z"))
	if out[0].Known || !out[1].Known || out[1].ID != "F00001" || !out[2].Known {
		t.Fatalf("outcomes %+v", out)
	}
	before := mustCheck(t, g)
	if out = mustCommit(t, g, fact(3, "Ann", "likes", "tea"), fact(1, "Ann", "likes", "coffee")); !out[0].Known || !out[1].Known {
		t.Fatalf("outcomes %+v", out)
	}
	if after := mustCheck(t, g); after.Log != before.Log {
		t.Fatalf("%d quads became %d", before.Log, after.Log)
	}
}

// A chain of changes in one call stays one chain.
func TestFunctionalChangesInOneBatch(t *testing.T) {
	g := openGraph(t)
	var facts []Fact
	for i := range 5 {
		f := fact(i, "Ann", "job", fmt.Sprint("job ", i))
		f.Functional = true
		facts = append(facts, f)
	}
	mustCommit(t, g, facts...)
	if got := say(t, g, "Ann", Query{At: noon.Add(90 * time.Hour)}); !slices.Equal(got, []string{"Ann job job 4"}) {
		t.Fatalf("now %q", got)
	}
	if got := say(t, g, "Ann", Query{At: noon.Add(150 * time.Minute)}); !slices.Equal(got, []string{"Ann job job 2"}) {
		t.Fatalf("then %q", got)
	}
	mustCheck(t, g)
}

func TestLargeCommitIsCutIntoBatches(t *testing.T) {
	g := openGraph(t)
	var facts []Fact
	for i := range 400 {
		facts = append(facts, fact(i, fmt.Sprint("person ", i%7), "knows", fmt.Sprint("thing ", i)))
	}
	joined := 0
	out, err := g.Commit(context.Background(), facts, func(txn store.Txn) error {
		joined++
		return txn.Put([]byte("xjoined"), []byte("1"))
	})
	if err != nil || len(out) != 400 || joined != 1 {
		t.Fatalf("%d outcomes, joined %d times, %v", len(out), joined, err)
	}
	if c := mustCheck(t, g); c.Facts != 400 {
		t.Fatalf("counts %+v", c)
	}
	found, complete, err := g.About(context.Background(), []string{"person 3"}, Query{At: noon.Add(1e6 * time.Hour)})
	if err != nil || complete || len(found) != MaxFanOut {
		t.Fatalf("%d facts, complete %v, %v", len(found), complete, err)
	}
	if found[0].ID != "F00395" {
		t.Fatalf("the newest first, got %s", found[0].ID)
	}
}

func TestTwoHops(t *testing.T) {
	g := openGraph(t)
	mustCommit(t, g, fact(1, "Ann", "sister of", "Bob"), fact(2, "Bob", "works at", "mill"), fact(3, "Zoe", "works at", "bank"))
	at := noon.Add(time.Hour * 10)
	if got := say(t, g, "Ann", Query{At: at}); len(got) != 1 {
		t.Fatalf("one hop %q", got)
	}
	found, complete, err := g.About(context.Background(), []string{"ann"}, Query{At: at, Hops: 2})
	if err != nil || !complete || len(found) != 2 || !slices.Equal(found[1].Path, []string{"Ann", "Bob"}) {
		t.Fatalf("two hops %+v, %v", found, err)
	}
}

func TestRetract(t *testing.T) {
	g := openGraph(t)
	mustCommit(t, g, fact(1, "Ann", "likes", "tea"), fact(2, "Ann", "likes", "milk"))
	ctx := context.Background()
	if err := g.Retract(ctx, noon, []string{"F00001", "nope"}); !errors.Is(err, ErrNotFound) {
		t.Fatalf("unknown id: %v", err)
	}
	if got := say(t, g, "Ann", Query{History: true}); len(got) != 2 {
		t.Fatalf("a failed retract wrote: %q", got)
	}
	for range 2 {
		if err := g.Retract(ctx, noon, []string{"F00001"}); err != nil {
			t.Fatal(err)
		}
	}
	if got := say(t, g, "Ann", Query{History: true}); !slices.Equal(got, []string{"Ann likes milk"}) {
		t.Fatalf("after retract %q", got)
	}
	// What was withdrawn can be said again.
	if out := mustCommit(t, g, fact(5, "Ann", "likes", "tea")); out[0].Known {
		t.Fatal("the retracted fact still counts as known")
	}
	mustCheck(t, g)
}

func TestInvalidFactsWriteNothing(t *testing.T) {
	g := openGraph(t)
	for name, change := range map[string]func(*Fact){
		"id":         func(f *Fact) { f.ID = "" },
		"subject":    func(f *Fact) { f.Subject = " \t" },
		"predicate":  func(f *Fact) { f.Predicate = "" },
		"object":     func(f *Fact) { f.Object = "" },
		"long":       func(f *Fact) { f.Object = strings.Repeat("x", MaxText+1) },
		"learned":    func(f *Fact) { f.LearnedAt = time.Time{} },
		"confidence": func(f *Fact) { f.Confidence = 1.5 },
		"validity":   func(f *Fact) { f.ValidTo = noon.Add(-time.Hour) },
	} {
		bad := fact(2, "a", "b", "c")
		change(&bad)
		if _, err := g.Commit(context.Background(), []Fact{fact(1, "Ann", "likes", "tea"), bad}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n, err := g.Size(); err != nil || n != 0 {
		t.Fatalf("%d quads, %v", n, err)
	}
}

// poison drives one failed write and then good ones, and tells whether every
// fact is attached to its own entity. With reuse, the QuadStore that saw the
// failure writes on, as cayley allows.
func poison(t *testing.T, reuse bool) (sound bool) {
	t.Helper()
	g := openGraph(t)
	mustCommit(t, g, fact(1, "alice", "likes", "tea"))
	broken := g.qs
	fail := errors.New("disk")
	_, err := g.Commit(context.Background(), []Fact{fact(2, "bob", "likes", "beer")}, func(store.Txn) error { return fail })
	if !errors.Is(err, fail) {
		t.Fatalf("the failing batch: %v", err)
	}
	if g.Rebuilds() != 1 {
		t.Fatalf("%d rebuilds", g.Rebuilds())
	}
	if reuse {
		g.qs = broken
	}
	mustCommit(t, g, fact(3, "carol", "likes", "wine"))
	mustCommit(t, g, fact(4, "bob", "likes", "milk"))
	c, err := g.Check(context.Background())
	if err != nil || !c.Sound() || c.Facts != 3 {
		t.Logf("counts %+v, %v", c, err)
		return false
	}
	sound = true
	for name, want := range map[string]string{"bob": "bob likes milk", "carol": "carol likes wine", "alice": "alice likes tea"} {
		found, _, err := g.About(context.Background(), []string{name}, Query{History: true})
		if err != nil || len(found) != 1 || found[0].Subject+" likes "+found[0].Object != want {
			t.Logf("%s: %+v, %v", name, found, err)
			sound = false
		}
	}
	return sound
}

// Cayley keeps ids of a rolled-back batch in its cache and attaches the next
// fact to whoever got the id. The graph makes the QuadStore anew after any error.
func TestFailedBatchDoesNotPoison(t *testing.T) {
	if !poison(t, false) {
		t.Error("a failed batch damaged the graph")
	}
	// The same without the rebuild: the damage must show, or this test would
	// prove nothing.
	if poison(t, true) {
		t.Error("reusing the failed QuadStore went unnoticed")
	}
}

// The same for an error inside cayley itself, with entries left in its write
// buffer: a missing quad on delete.
func TestFailedApplyLeavesNoBuffer(t *testing.T) {
	g := openGraph(t)
	mustCommit(t, g, fact(1, "alice", "likes", "tea"))
	before := mustCheck(t, g)
	q := quad.Quad{Subject: quad.IRI("f/x"), Predicate: predSubject, Object: quad.IRI("e/x"), Label: quad.IRI("s/x")}
	missing := quad.Quad{Subject: quad.IRI("f/y"), Predicate: predSubject, Object: quad.IRI("e/y"), Label: quad.IRI("s/y")}
	err := g.qs.ApplyDeltas([]graph.Delta{{Quad: q, Action: graph.Add}, {Quad: missing, Action: graph.Delete}}, graph.IgnoreOpts{})
	if err == nil {
		t.Fatal("the batch went through")
	}
	if err := g.rebuild(); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, g, fact(2, "bob", "likes", "milk"))
	if after := mustCheck(t, g); after.Facts != before.Facts+1 {
		t.Fatalf("counts %+v", after)
	}
}

func TestLayOutIsOneTransaction(t *testing.T) {
	db := openStore(t, "")
	commits := db.Stats().Commits
	if _, err := Open(db); err != nil {
		t.Fatal(err)
	}
	if n := db.Stats().Commits - commits; n != 1 {
		t.Fatalf("the layout took %d transactions", n)
	}
	// Opened again, nothing is written and the indexes are ours.
	g, err := Open(db)
	if err != nil || db.Stats().Commits-commits != 1 {
		t.Fatalf("second open wrote, or %v", err)
	}
	mustCommit(t, g, fact(1, "a", "b", "c"))
	c := mustCheck(t, g)
	if want := []string{"c", "op", "ops", "sp", "spo"}; len(c.Index) != len(want) {
		t.Fatalf("indexes %v", c.Index)
	}
}

func TestOpenTakesLittleHeap(t *testing.T) {
	db := openStore(t, "")
	before := heap()
	g, err := Open(db)
	if err != nil {
		t.Fatal(err)
	}
	mustCommit(t, g, fact(1, "a", "b", "c"))
	if grown := heap() - before; grown > 8<<20 {
		t.Errorf("an open graph holds %d bytes", grown)
	}
	runtime.KeepAlive(g)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestNamed(t *testing.T) {
	g := openGraph(t)
	long := strings.Repeat("a", 5000) // longer than a key of the store may be
	mustCommit(t, g, fact(1, "New York", "is", "big"), fact(2, "张 三", "喜欢", "茶"), fact(3, "York", "in", "England"),
		fact(4, "C++", "is", "hard"), fact(5, "My sister", "is", "tall"), fact(6, long, "is", "long"))
	for text, want := range map[string][]string{
		"what about new  YORK?":            {"New York"},
		"is York nice":                     {"York"},
		"张三的茶":                             {"张 三", "茶"},
		"I write C++ in england":           {"C++", "England"},
		"do you know my sister's birthday": {"My sister"},
		"nothing here":                     nil,
		"see " + long + ", York":           {long, "York"},
		strings.Repeat("b", 5000):          nil,
	} {
		found, err := g.Named(text, 10)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range found {
			got = append(got, e.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q names %q, want %q", text, got, want)
		}
	}
}

func TestKey(t *testing.T) {
	for _, same := range [][]string{
		{"New York", "new  york", " NEW YORK ", "Ｎｅｗ　Ｙｏｒｋ", "new-york"},
		{"张三", "张 三", "张　三"},
		{"Ann", "ann's", "Ann’s"},
	} {
		for _, s := range same[1:] {
			if Key(s) != Key(same[0]) {
				t.Errorf("Key(%q) = %q, Key(%q) = %q", s, Key(s), same[0], Key(same[0]))
			}
		}
	}
	for _, pair := range [][2]string{{"C", "C++"}, {"C#", "C++"}, {"ab", "a b"}, {"👍", "👎"}, {"a_b", "ab"}} {
		if Key(pair[0]) == Key(pair[1]) {
			t.Errorf("%q and %q share the key %q", pair[0], pair[1], Key(pair[0]))
		}
	}
	if a, b := Key(strings.Repeat("x", 5000)+"a"), Key(strings.Repeat("x", 5000)+"b"); a == b || len(a) > maxKey {
		t.Errorf("long names: %d bytes, equal %v", len(a), a == b)
	}
}

func FuzzIndexKey(f *testing.F) {
	f.Add([]byte(indexKey("spo", 1, 2, 0x2f5c)), 3)
	f.Add([]byte(`sp/\`), 2)
	f.Add([]byte(nil), 1)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if n < 0 || n > 4 {
			return
		}
		ids, err := indexIDs(flat.Key(b), n)
		if err == nil && len(ids) != n {
			t.Fatalf("%d ids of %d", len(ids), n)
		}
		if list, err := decodeList(b); err == nil {
			for range list {
			}
		}
	})
}

func FuzzDetail(f *testing.F) {
	f.Add(`{"v":1,"s":"a","p":"b","o":"c","c":1}`)
	f.Add(`{`)
	f.Fuzz(func(t *testing.T, s string) {
		var fact Fact
		if err := fact.set(predDetail, quad.String(s)); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
	})
}

// TestKill writes facts in a process that is killed, and looks for every fact
// that was acknowledged.
func TestKill(t *testing.T) {
	if dir := os.Getenv("GRAPHMEM_KILL_DIR"); dir != "" {
		writeUntilKilled(dir)
		return
	}
	dir := t.TempDir()
	acknowledged := 0
	for round := range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
		cmd.Env = append(os.Environ(), "GRAPHMEM_KILL_DIR="+dir, fmt.Sprint("GRAPHMEM_KILL_FROM=", acknowledged))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for range 40 {
			var n int
			if _, err := fmt.Fscanln(out, &n); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			acknowledged = n + 1
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		db, err := store.Open(dir, store.Options{Reserve: -1})
		if err != nil {
			t.Fatal(err)
		}
		g, err := Open(db)
		if err != nil {
			t.Fatal(err)
		}
		c := mustCheck(t, g)
		if c.Facts < int64(acknowledged) {
			t.Fatalf("round %d: %d facts, %d were acknowledged", round, c.Facts, acknowledged)
		}
		for i := range acknowledged {
			f, err := g.Fact(fact(i, "", "", "").ID)
			if err != nil || f.Subject != fmt.Sprint("person ", i%9) || f.Object != fmt.Sprint("thing ", i) {
				t.Fatalf("fact %d: %+v, %v", i, f, err)
			}
		}
		acknowledged = int(c.Facts)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func writeUntilKilled(dir string) {
	var from int
	_, _ = fmt.Sscan(os.Getenv("GRAPHMEM_KILL_FROM"), &from)
	db, err := store.Open(dir, store.Options{Reserve: -1})
	if err != nil {
		panic(err)
	}
	g, err := Open(db)
	if err != nil {
		panic(err)
	}
	for i := from; ; i++ {
		if _, err := g.Commit(context.Background(), []Fact{fact(i, fmt.Sprint("person ", i%9), "knows", fmt.Sprint("thing ", i))}); err != nil {
			panic(err)
		}
		if err := db.Sync(); err != nil {
			panic(err)
		}
		fmt.Println(i)
	}
}

func TestClosed(t *testing.T) {
	g := openGraph(t)
	if err := errors.Join(g.Close(), g.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Commit(context.Background(), nil); !errors.Is(err, ErrClosed) {
		t.Errorf("commit: %v", err)
	}
	if _, err := g.Fact("x"); !errors.Is(err, ErrClosed) {
		t.Errorf("read: %v", err)
	}
}

// BenchmarkHub reads an entity with 1,000 neighbours that have ten each.
func BenchmarkHub(b *testing.B) {
	g := openGraph(b)
	var facts []Fact
	n := 0
	for i := range 1000 {
		facts = append(facts, fact(n, "hub", fmt.Sprint("rel ", i%20), fmt.Sprint("node ", i)))
		n++
		for j := range 10 {
			facts = append(facts, fact(n, fmt.Sprint("node ", i), fmt.Sprint("rel ", j), fmt.Sprint("leaf ", i, " ", j)))
			n++
		}
	}
	start := time.Now()
	if _, err := g.Commit(context.Background(), facts); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(facts))/time.Since(start).Seconds(), "facts/s")
	b.ResetTimer()
	for b.Loop() {
		if _, _, err := g.About(context.Background(), []string{"hub"}, Query{At: noon.Add(1e6 * time.Hour), Hops: 2}); err != nil {
			b.Fatal(err)
		}
	}
}
