package lexical

import (
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/go-ego/gse"
)

//go:generate sh -c "go run gendict.go \"$(go list -m -f {{.Dir}} github.com/go-ego/gse)\""

// packed is a word per line with its frequency, made by go generate from the gse
// module's own data (licence in NOTICE). gse's embedded dictionaries (35 MB) stay
// out of the program as long as nothing reaches the functions that load them,
// and as long as no type that can become an interface value names its Segmenter:
// a program that looks methods up by name keeps all methods of all such types.
//
//go:embed dict.txt.gz
var packed string

// Dictionary cuts Chinese text into words. It holds about 22 MB while loaded;
// Load takes about 0.2 s of one core. The zero value is an unloaded dictionary.
// Safe for concurrent use.
type Dictionary struct {
	mu   sync.RWMutex
	seg  cutter
	used time.Time
	load sync.Mutex
}

// cutter cuts a run of Han characters into words; nil is an unloaded dictionary.
// A function hides the type behind it, see packed.
type cutter func(run string) []string

// Loaded reports whether words can be cut now.
func (d *Dictionary) Loaded() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.seg != nil
}

// Load loads the dictionary unless it is loaded; call it from a worker.
func (d *Dictionary) Load(now time.Time) error {
	d.load.Lock()
	defer d.load.Unlock()
	if d.Loaded() {
		return nil
	}
	z, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		return fmt.Errorf("lexical: dictionary: %w", err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return fmt.Errorf("lexical: dictionary: %w", err)
	}
	seg := &gse.Segmenter{SkipLog: true, NotLoadHMM: true}
	if err := seg.LoadDictStr(string(text)); err != nil {
		return fmt.Errorf("lexical: dictionary: %w", err)
	}
	// Loading leaves as much garbage as it keeps, and an idle node collects none.
	defer debug.FreeOSMemory()
	d.mu.Lock()
	defer d.mu.Unlock()
	// Without the hidden Markov model: it glues unknown neighbours together.
	d.seg, d.used = func(run string) []string { return seg.Cut(run, false) }, now
	return nil
}

// DropIdle unloads the dictionary when it was last used before the given time,
// and reports whether it did; call it from a worker.
func (d *Dictionary) DropIdle(before time.Time) bool {
	d.mu.Lock()
	drop := d.seg != nil && d.used.Before(before)
	if drop {
		d.seg = nil
	}
	d.mu.Unlock()
	if drop {
		debug.FreeOSMemory()
	}
	return drop
}

// Words returns the words of two or more Han characters in text, nil when the
// dictionary is not loaded.
func (d *Dictionary) Words(now time.Time, text string) []string {
	d.mu.Lock()
	seg := d.seg
	if seg != nil && now.After(d.used) {
		d.used = now
	}
	d.mu.Unlock()
	if seg == nil {
		return nil
	}
	var out []string
	scan(text, func(run []rune, kind runKind) {
		if kind != runHan {
			return
		}
		for _, w := range seg(string(run)) {
			if r := []rune(w); len(r) >= 2 && unspaced(r[0]) {
				out = append(out, cut(w))
			}
		}
	})
	return out
}
