package kernel

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"homeagent/actors/kit"
	"homeagent/configs"
)

// StructureError is one of the three faults that a table can have.
type StructureError struct {
	// Fault is "missing", "double" or "circular".
	Fault string
	// Facility it is about; for a circle its first one.
	Facility kit.Facility
	// Kinds of the rows that are concerned, in order.
	Kinds []string
	// Nearest declared name, for a missing one; may be empty.
	Nearest string
	// Declared are all facilities that are provided.
	Declared []kit.Facility
}

// Error says what is wrong, with all declared facilities.
func (e *StructureError) Error() string {
	var b strings.Builder
	switch e.Fault {
	case "missing":
		fmt.Fprintf(&b, "facility %q, which %s requires, is provided by nobody", e.Facility, strings.Join(e.Kinds, " and "))
		if e.Nearest != "" {
			fmt.Fprintf(&b, "; did you mean %q?", e.Nearest)
		}
	case "double":
		fmt.Fprintf(&b, "facility %q is provided by %s", e.Facility, strings.Join(e.Kinds, " and by "))
	default:
		fmt.Fprintf(&b, "circular requirements: %s", strings.Join(append(e.Kinds, e.Kinds[0]), " -> "))
	}
	names := make([]string, len(e.Declared))
	for i, f := range e.Declared {
		names[i] = string(f)
	}
	fmt.Fprintf(&b, " (declared: %s)", strings.Join(names, ", "))
	return b.String()
}

// Plan derives the layers of a table: each row stands in the first layer after all that it requires. Rows without a path
// have no layer. The error is a *StructureError.
func Plan(rows []Row) ([][]Row, error) {
	byFacility, err := whoProvides(rows)
	if err != nil {
		return nil, err
	}
	layer := map[string]int{}
	var visit func(r Row, trail []string) (int, error)
	visit = func(r Row, trail []string) (int, error) {
		if i := slices.Index(trail, r.Kind); i >= 0 {
			circle := trail[i:]
			return 0, &StructureError{Fault: "circular", Facility: r.Provides[0], Kinds: circle, Declared: declared(byFacility)}
		}
		if n, done := layer[r.Kind]; done {
			return n, nil
		}
		n := 0
		for _, f := range r.Requires {
			below, err := visit(byFacility[f], append(slices.Clone(trail), r.Kind))
			if err != nil {
				return 0, err
			}
			n = max(n, below+1)
		}
		layer[r.Kind] = n
		return n, nil
	}
	var layers [][]Row
	for _, r := range rows {
		n, err := visit(r, nil)
		if err != nil {
			return nil, err
		}
		if len(r.Paths) == 0 {
			continue
		}
		for len(layers) <= n {
			layers = append(layers, nil)
		}
		layers[n] = append(layers[n], r)
	}
	return layers, nil
}

// whoProvides finds who provides each facility, and the first two structural errors.
func whoProvides(rows []Row) (map[kit.Facility]Row, error) {
	out := map[kit.Facility]Row{}
	for _, r := range rows {
		for _, f := range r.Provides {
			if other, twice := out[f]; twice {
				return nil, &StructureError{Fault: "double", Facility: f, Kinds: []string{other.Kind, r.Kind}, Declared: declared(out)}
			}
			out[f] = r
		}
	}
	for _, r := range rows {
		for _, f := range r.Requires {
			if _, ok := out[f]; ok {
				continue
			}
			all := declared(out)
			names := make([]string, len(all))
			for i, d := range all {
				names[i] = string(d)
			}
			e := &StructureError{Fault: "missing", Facility: f, Kinds: []string{r.Kind}, Declared: all}
			if near := configs.Nearest(string(f), names, 1); len(near) > 0 {
				e.Nearest = near[0]
			}
			return nil, e
		}
	}
	return out, nil
}

func declared(byFacility map[kit.Facility]Row) []kit.Facility {
	var out []kit.Facility
	for f := range byFacility {
		out = append(out, f)
	}
	slices.Sort(out)
	return out
}

// Graph prints the table of this build by layers, with the digest of what it printed.
func Graph(w io.Writer) error {
	layers, err := Plan(Table())
	if err != nil {
		return err
	}
	text := render(layers, Table())
	sum := sha256.Sum256([]byte(text))
	_, err = fmt.Fprintf(w, "%sdigest  %s\n", text, hex.EncodeToString(sum[:8]))
	return err
}

func render(layers [][]Row, rows []Row) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "layer\tkind\tpath\trequires\tprovides\trestart")
	line := func(layer string, r Row) {
		path := "-"
		if len(r.Paths) == 1 {
			path = r.Paths[0]
		} else if len(r.Paths) > 1 {
			path = fmt.Sprintf("%s (%d)", r.Paths[0][:strings.LastIndexByte(r.Paths[0], '/')+1]+"*", len(r.Paths))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", layer, r.Kind, path, join(r.Requires), join(r.Provides), restart(r.Restart))
	}
	for i, l := range layers {
		for _, r := range l {
			line(fmt.Sprint(i), r)
		}
	}
	for _, r := range rows {
		if len(r.Paths) == 0 {
			line("-", r)
		}
	}
	_ = t.Flush() // a strings.Builder does not fail
	return b.String()
}

func join(list []kit.Facility) string {
	if len(list) == 0 {
		return "-"
	}
	names := make([]string, len(list))
	for i, f := range list {
		names[i] = string(f)
	}
	return strings.Join(names, ",")
}

func restart(r kit.Restart) string {
	if r.Intensity == 0 {
		if r.Escalate {
			return "never, escalate"
		}
		return "never"
	}
	then := "stop"
	if r.Escalate {
		then = "escalate"
	}
	return fmt.Sprintf("%d in %s, then %s", r.Intensity, r.Period, then)
}
