package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// report is all of one run.
type report struct {
	Files      []*figures  `json:"files"`
	Abstention []*abstains `json:"abstention,omitempty"`
	Revision   string      `json:"revision"`
	Machine    machine     `json:"machine"`
}

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp), errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "recallbench:", err)
		os.Exit(1)
	}
}

// options of a run.
type options struct {
	files      []string
	evidence   string
	json       bool
	signs      bool
	abstention int
}

// parse takes flags before, between and after the files.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	set := flag.NewFlagSet("recallbench", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.Usage = func() {
		fmt.Fprintln(stderr, "usage: recallbench [flags] FILE... [--evidence FILE]")
		set.PrintDefaults()
	}
	set.StringVar(&o.evidence, "evidence", "", "labels of a MemoryBank `file`")
	set.BoolVar(&o.json, "json", false, "print JSON")
	set.BoolVar(&o.signs, "signs", true, "rank by and without each sign too")
	set.Func("abstention", "ask `N` questions whose answer is not there, and as many whose answer is (200 for \"true\")", func(v string) error {
		if v == "true" {
			v = "200"
		}
		if _, err := fmt.Sscan(v, &o.abstention); err != nil || o.abstention < 1 {
			return fmt.Errorf("%w: not a number of questions", errUsage)
		}
		return nil
	})
	// A flag of its own form: "--abstention" alone means 200.
	for i, a := range args {
		if (a == "--abstention" || a == "-abstention") && (i+1 == len(args) || strings.Trim(args[i+1], "0123456789") != "") {
			args = append(append(append([]string(nil), args[:i]...), "--abstention=200"), args[i+1:]...)
			break
		}
	}
	for len(args) > 0 {
		if err := set.Parse(args); err != nil {
			return o, err
		}
		args = set.Args()
		for len(args) > 0 && !strings.HasPrefix(args[0], "-") {
			o.files = append(o.files, args[0])
			args = args[1:]
		}
	}
	if len(o.files) == 0 {
		set.Usage()
		return o, errUsage
	}
	return o, nil
}

func run(args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	var labels map[string][]label
	if o.evidence != "" {
		if labels, err = readLabels(o.evidence); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "recallbench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	out := &report{Revision: revision(), Machine: describe()}
	for i, path := range o.files {
		if err := out.add(path, filepath.Join(dir, fmt.Sprint(i)), labels, o); err != nil {
			return err
		}
	}
	if o.json {
		return json.NewEncoder(stdout).Encode(out)
	}
	return out.table(stdout)
}

// add measures one file.
func (r *report) add(path, dir string, labels map[string][]label, o options) (err error) {
	f, err := readFile(path, labels)
	if err != nil {
		return err
	}
	l, err := study(f, dir)
	defer func() { err = errors.Join(err, l.close()) }()
	if err != nil {
		return err
	}
	fig, err := l.measure(o.signs)
	if err != nil {
		return err
	}
	r.Files = append(r.Files, fig)
	if o.abstention > 0 {
		a, err := l.abstention(o.abstention)
		if err != nil {
			return err
		}
		r.Abstention = append(r.Abstention, a)
	}
	return nil
}
