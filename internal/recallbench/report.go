package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"
)

// table writes a report for people.
func (r *report) table(out io.Writer) error {
	m := r.Machine
	fmt.Fprintf(out, "revision %s, %s, %s, %d cores, %s, load %s\n", r.Revision, m.Go, m.CPU, m.Cores, m.OS, m.Load)
	for i, f := range r.Files {
		fmt.Fprintf(out, "\n%s: %d questions over %d events (indexed in %.1f s), recall p50 %.2f ms, p99 %.2f ms\n\n",
			f.File, f.Questions, f.Events, f.Indexing, f.Latency.P50, f.Latency.P99)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprint(w, "\tquestions")
		for _, k := range cuts {
			fmt.Fprintf(w, "\t@%d", k)
		}
		fmt.Fprintln(w, "\tMRR\t95 % of @10\t")
		f.row(w, "all", score{f.Questions, f.Recall, f.MRR, f.Intervals})
		f.row(w, "plain BM25", f.BM25)
		for _, g := range []struct {
			name string
			list map[string]score
		}{{"", f.Categories}, {"", f.Conversations}, {"only ", f.Channels}, {"without ", f.Without}} {
			for _, name := range slices.Sorted(maps.Keys(g.list)) {
				f.row(w, g.name+name, g.list[name])
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if i < len(r.Abstention) {
			if err := r.Abstention[i].table(out); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *figures) row(w io.Writer, name string, s score) {
	fmt.Fprintf(w, "%s\t%d", name, s.Questions)
	for _, k := range cuts {
		fmt.Fprintf(w, "\t%.1f", s.Recall[strconv.Itoa(k)])
	}
	fmt.Fprintf(w, "\t%.3f", s.MRR)
	if i, ok := s.Intervals["10"]; ok {
		fmt.Fprintf(w, "\t%.1f to %.1f", i[0], i[1])
	} else {
		fmt.Fprint(w, "\t")
	}
	fmt.Fprintln(w, "\t")
}
