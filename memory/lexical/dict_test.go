package lexical

import (
	"bytes"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDictionary(t *testing.T) {
	var d Dictionary
	now := time.Unix(1000, 0)
	if d.Words(now, "我妹妹的生日") != nil || d.Loaded() {
		t.Fatal("words without a dictionary")
	}
	before := heap()
	start := time.Now()
	if err := d.Load(now); err != nil {
		t.Fatal(err)
	}
	t.Logf("loaded in %v, heap %.1f MB", time.Since(start), float64(heap()-before)/1e6)
	if grown := heap() - before; grown > 40e6 {
		t.Errorf("the dictionary holds %d bytes", grown)
	}
	if got := d.Words(now, "我妹妹的生日在5月，明天去图书馆"); !slices.Equal(got, []string{"妹妹", "生日", "明天", "图书馆"}) {
		t.Errorf("words %q", got)
	}
	if d.DropIdle(now) {
		t.Error("dropped while in use")
	}
	d.Words(now.Add(time.Minute), "生日")
	if d.DropIdle(now.Add(time.Second)) {
		t.Error("use did not keep it")
	}
	if !d.DropIdle(now.Add(time.Hour)) || d.Loaded() {
		t.Error("not dropped when idle")
	}
	if left := heap() - before; left > 2e6 {
		t.Errorf("%d bytes are left after the drop", left)
	}
}

// gse embeds 35 MB of dictionaries. The linker drops them only while nothing
// reaches the functions that use them; this test's own program shows it.
func TestEmbeddedDictionariesAreNotLinked(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	// A line of ours is there, so that the search is known to work on the
	// packed bytes; lines of gse's data are looked for in pieces, so that this
	// file does not hold them.
	if !bytes.Contains(program, []byte(packed[100:200])) {
		t.Fatal("the packed dictionary is not in the program")
	}
	for _, line := range []struct{ head, tail string }{
		{"AB型 3 ", "n"}, {"めんどうくさけれ 6956 ", "形容詞"}, {"京石高速公路 13.20753", "04714"}, {"AT&T 3 ", "nz"},
	} {
		want := strings.Join([]string{line.head, line.tail}, "")
		if bytes.Contains(program, []byte(want)) {
			t.Errorf("gse's embedded data is linked: found %q", want)
		}
	}
	if len(program) > 30<<20 {
		t.Errorf("the program has %d bytes", len(program))
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
