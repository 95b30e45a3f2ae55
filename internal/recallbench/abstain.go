package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"homeagent/memory/recall"
)

// abstains is how memory tells what it has from what it has not.
type abstains struct {
	File string `json:"file"`
	// There and Absent are how many questions were asked whose answer is there, and is not.
	There  int `json:"there"`
	Absent int `json:"absent"`
	// Default is the node's own answer; Curve what other floors would give.
	Default point   `json:"default"`
	Curve   []point `json:"curve"`
}

// point of the curve.
type point struct {
	// Floor is the least relevance of what is listed.
	Floor float64 `json:"floor"`
	// False is the share of absent answers for which something was listed; Lost that of answers that are there for which
	// nothing was; in percent.
	False float64 `json:"false_answers"`
	Lost  float64 `json:"lost"`
	// Recall is the evidence recall@10 of the questions whose answer is there.
	Recall float64 `json:"recall_at_10"`
}

func (a *abstains) table(out io.Writer) error {
	fmt.Fprintf(out, "\nabstention: %d questions whose answer is there, %d whose answer is not\n\n", a.There, a.Absent)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "floor\tfalse answers\tlost\tevidence @10\t")
	for _, p := range append([]point{a.Default}, a.Curve...) {
		name := fmt.Sprintf("%.2f", p.Floor)
		if p == a.Default {
			name += " (default)"
		}
		fmt.Fprintf(w, "%s\t%.1f %%\t%.1f %%\t%.1f\t\n", name, p.False, p.Lost, p.Recall)
	}
	return w.Flush()
}

// asked is a question put to one memory.
type asked struct {
	corpus int
	q      *question
}

// spread takes n of a list, evenly spread.
func spread(list []asked, n int) []asked {
	if len(list) <= n {
		return list
	}
	out := make([]asked, 0, n)
	for i := range n {
		out = append(out, list[i*len(list)/n])
	}
	return out
}

// abstention asks n questions whose answer is there and n whose answer is not: those of the other conversations of the file,
// each asked of the next memory.
func (l *library) abstention(n int) (*abstains, error) {
	var there, absent []asked
	for i := range l.corpora {
		for j := range l.corpora[i].questions {
			there = append(there, asked{i, &l.corpora[i].questions[j]})
			if len(l.corpora) > 1 {
				absent = append(absent, asked{(i + 1 + j%(len(l.corpora)-1)) % len(l.corpora), &l.corpora[i].questions[j]})
			}
		}
	}
	there, absent = spread(there, n), spread(absent, n)
	if len(there) == 0 || len(absent) == 0 {
		return nil, fmt.Errorf("abstention over %s: %w", l.name, errNothing)
	}
	out := &abstains{File: l.name, There: len(there), Absent: len(absent)}
	var err error
	if out.Default, err = l.point(there, absent, nil); err != nil {
		return nil, err
	}
	out.Default.Floor = recall.Floor
	for f := range 21 {
		floor := float64(f) / 20
		p, err := l.point(there, absent, &floor)
		if err != nil {
			return nil, err
		}
		out.Curve = append(out.Curve, p)
	}
	return out, nil
}

// point measures one floor; nil is the node's own.
func (l *library) point(there, absent []asked, floor *float64) (point, error) {
	var p point
	if floor != nil {
		p.Floor = *floor
	}
	for _, x := range absent {
		a, err := l.memories[x.corpus].floored(x.q.text, floor)
		if err != nil {
			return p, err
		}
		if len(a.Items) > 0 {
			p.False += 100 / float64(len(absent))
		}
	}
	for _, x := range there {
		m := l.memories[x.corpus]
		a, err := m.floored(x.q.text, floor)
		if err != nil {
			return p, err
		}
		if len(a.Items) == 0 {
			p.Lost += 100 / float64(len(there))
		}
		o := judge("", x.q, m.found(&a))
		p.Recall += 100 * o.recall[slices.Index(cuts, 10)] / float64(len(there))
	}
	p.False, p.Lost, p.Recall = round(p.False), round(p.Lost), round(p.Recall)
	return p, nil
}
