package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
)

// table writes a report for people.
func (r *Report) table(out io.Writer) error {
	m := r.Machine
	fmt.Fprintf(out, "revision %s, %s, %s\n", r.Revision, r.Go, r.At.Format("2006-01-02 15:04 MST"))
	fmt.Fprintf(out, "%s, %d cores, %.1f GB, %s, load %.2f before and %.2f after\n\n",
		m.CPU, m.Cores, float64(m.Memory)/1e9, m.OS, m.Load, m.LoadAfter)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "figure\tn\tp50\tp95\tp99\tmin\tmax\tunit\ttarget\t")
	for _, f := range r.Figures {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", f.Name, f.N, number(f.P50), number(f.P95), number(f.P99), number(f.Min), number(f.Max), f.Unit, f.verdict())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, f := range r.Figures {
		if f.Note != "" {
			fmt.Fprintf(out, "%s: %s\n", f.Name, f.Note)
		}
	}
	return nil
}

// verdict is the target with ok or missed.
func (f Figure) verdict() string {
	if f.Target == nil {
		return ""
	}
	word := "missed"
	if f.OK {
		word = "ok"
	}
	return fmt.Sprintf("%s <= %s %s", f.Target.Of, number(f.Target.Most), word)
}

// number has three digits that matter.
func number(v float64) string {
	decimals := 3
	for limit := 1.0; decimals > 0 && (v >= limit || v <= -limit); limit *= 10 {
		decimals--
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.ContainsRune(text, '.') {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// save writes a report as JSON.
func (r *Report) save(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
