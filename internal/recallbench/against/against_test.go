package against

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/blevesearch/bleve/v2"
	_ "modernc.org/sqlite" // the driver of database/sql

	"homeagent/memory/contextmem"
	"homeagent/memory/graphmem"
	"homeagent/memory/ledger"
	"homeagent/memory/lexical"
	"homeagent/memory/recall"
	"homeagent/memory/store"
	"homeagent/messages"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// texts and questions are the same for all: words with the frequencies of a natural vocabulary.
type world struct {
	words []string
	zipf  *rand.Zipf
	rng   *rand.Rand
}

func newWorld() *world {
	w := &world{rng: rand.New(rand.NewPCG(1, 2))}
	w.zipf = rand.NewZipf(w.rng, 1.1, 4, 30_000)
	for i := range 30_001 {
		w.words = append(w.words, fmt.Sprintf("w%sx", strings.Map(func(r rune) rune { return r - '0' + 'a' }, fmt.Sprint(i))))
	}
	return w
}

func (w *world) text(n int) string {
	var out []string
	for range n {
		out = append(out, w.words[w.zipf.Uint64()])
	}
	return strings.Join(out, " ")
}

func (w *world) fact() [3]string {
	return [3]string{w.words[w.zipf.Uint64()], w.words[w.zipf.Uint64()], w.words[w.zipf.Uint64()]}
}

func quantiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// ask measures questions of four words.
func ask(b *testing.B, find func(words []string)) {
	b.Helper()
	w := newWorld()
	for range 50 {
		find(strings.Fields(w.text(4)))
	}
	var took []time.Duration
	for b.Loop() {
		q := strings.Fields(w.text(4))
		start := time.Now()
		find(q)
		took = append(took, time.Since(start))
	}
	quantiles(b, took)
}

var sizes = []int{10_000, 100_000}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkHomeAgent is recall end to end: words, windows, sessions, facts, floor.
func BenchmarkHomeAgent(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newWorld()
			db, err := store.Open(b.TempDir(), store.Options{Reserve: -1})
			must(b, err)
			defer func() { must(b, db.Close()) }()
			index := &lexical.Index{}
			l, err := ledger.Open(db, ledger.Options{Indexer: contextmem.New(db, index)})
			must(b, err)
			var events []*messages.Event
			for i := range n {
				id := fmt.Sprintf("E%08d", i)
				events = append(events, &messages.Event{
					EventId: id, Kind: messages.EventKind_EVENT_KIND_INPUT, Agent: "main", Conversation: fmt.Sprint("c", i%3),
					AtUs:   noon.Add(time.Duration(i) * time.Minute).UnixMicro(),
					Blocks: []*messages.Block{{BlockId: id + "/b", Content: &messages.Part{Content: &messages.Part_Text{Text: w.text(8 + i%20)}}}},
				})
			}
			for chunk := range slices.Chunk(events, 8) {
				done := l.Execute(noon, []*messages.LedgerExecute{{Ops: []*messages.LedgerOp{{Op: &messages.LedgerOp_Events{Events: &messages.AppendEvents{Events: chunk}}}}}})
				if e := done[0].GetError(); e != nil {
					b.Fatal(e)
				}
			}
			g, err := graphmem.Open(db)
			must(b, err)
			defer func() { must(b, g.Close()) }()
			for from := 0; from < n/10; from += 100 {
				var facts []graphmem.Fact
				for i := range 100 {
					f := w.fact()
					facts = append(facts, graphmem.Fact{ID: fmt.Sprintf("F%08d", from+i), Subject: f[0], Predicate: f[1], Object: f[2], LearnedAt: noon})
				}
				_, err := g.Commit(context.Background(), facts)
				must(b, err)
			}
			e := recall.New(db, index, g)
			ask(b, func(words []string) {
				_, err := e.Recall(context.Background(), recall.Question{Text: strings.Join(words, " ") + "?", Now: noon})
				must(b, err)
			})
		})
	}
}

// BenchmarkSQLite is what the original does: every word as a LIKE over the texts and over the names of nodes, then two steps
// of edges from the nodes that it found, node by node with prepared statements.
func BenchmarkSQLite(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			db := fillSQLite(b, newWorld(), n)
			texts, err := db.Prepare(`SELECT id, content FROM blocks WHERE content LIKE ? ORDER BY id DESC LIMIT 10`)
			must(b, err)
			names, err := db.Prepare(`SELECT id FROM nodes WHERE name LIKE ? LIMIT 32`)
			must(b, err)
			edges, err := db.Prepare(`SELECT dst FROM edges WHERE src = ? UNION SELECT src FROM edges WHERE dst = ? LIMIT 32`)
			must(b, err)
			ask(b, func(words []string) {
				seen := map[int64]bool{}
				var layer []int64
				for _, word := range words {
					drain(b, texts, nil, "%"+word+"%")
					drain(b, names, func(id int64) { layer = append(layer, id) }, "%"+word+"%")
				}
				for range 2 {
					var next []int64
					for _, id := range layer {
						if !seen[id] && len(seen) < 512 {
							seen[id] = true
							drain(b, edges, func(id int64) { next = append(next, id) }, id, id)
						}
					}
					layer = next
				}
			})
		})
	}
}

func fillSQLite(b *testing.B, w *world, n int) *sql.DB {
	b.Helper()
	db, err := sql.Open("sqlite", filepath.Join(b.TempDir(), "graph.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)")
	must(b, err)
	db.SetMaxOpenConns(1)
	b.Cleanup(func() { must(b, db.Close()) })
	_, err = db.Exec(`CREATE TABLE blocks (id INTEGER PRIMARY KEY, content TEXT, at INTEGER);
		CREATE TABLE nodes (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
		CREATE TABLE edges (id INTEGER PRIMARY KEY, src INTEGER, dst INTEGER, type TEXT);
		CREATE INDEX edges_src ON edges(src); CREATE INDEX edges_dst ON edges(dst)`)
	must(b, err)
	tx, err := db.Begin()
	must(b, err)
	for i := range n {
		_, err := tx.Exec(`INSERT INTO blocks (content, at) VALUES (?, ?)`, w.text(8+i%20), i)
		must(b, err)
	}
	for range n / 10 {
		f := w.fact()
		for _, name := range []string{f[0], f[2]} {
			_, err := tx.Exec(`INSERT OR IGNORE INTO nodes (name) VALUES (?)`, name)
			must(b, err)
		}
		_, err := tx.Exec(`INSERT INTO edges (src, dst, type) SELECT a.id, b.id, ? FROM nodes a, nodes b WHERE a.name = ? AND b.name = ?`, f[1], f[0], f[2])
		must(b, err)
	}
	must(b, tx.Commit())
	return db
}

// drain reads all rows of a statement; the first column is an id.
func drain(b *testing.B, s *sql.Stmt, fn func(id int64), args ...any) {
	b.Helper()
	rows, err := s.Query(args...)
	must(b, err)
	columns, err := rows.Columns()
	must(b, err)
	for rows.Next() {
		var id int64
		var text string
		into := []any{&id, &text}[:len(columns)]
		must(b, rows.Scan(into...))
		if fn != nil {
			fn(id)
		}
	}
	must(b, rows.Err())
	must(b, rows.Close())
}

// BenchmarkBleve is the lexical part alone: its BM25-like default over the same texts, ten hits.
func BenchmarkBleve(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newWorld()
			index, err := bleve.New(filepath.Join(b.TempDir(), "bleve"), bleve.NewIndexMapping())
			must(b, err)
			defer func() { must(b, index.Close()) }()
			for from := 0; from < n; from += 500 {
				batch := index.NewBatch()
				for i := range 500 {
					must(b, batch.Index(fmt.Sprint(from+i), map[string]string{"text": w.text(8 + i%20)}))
				}
				must(b, index.Batch(batch))
			}
			ask(b, func(words []string) {
				_, err := index.Search(bleve.NewSearchRequestOptions(bleve.NewMatchQuery(strings.Join(words, " ")), 10, 0, false))
				must(b, err)
			})
		})
	}
}
