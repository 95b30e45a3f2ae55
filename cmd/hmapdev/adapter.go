package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"homeagent/providers"
	"homeagent/providers/lua"
	"homeagent/providers/replay"
)

type adapterCmd struct {
	List   adapterListCmd   `cmd:"" help:"Show the adapters."`
	Check  adapterCheckCmd  `cmd:"" help:"Check an adapter's file against the contract and try each of its functions."`
	Replay adapterReplayCmd `cmd:"" help:"Show what an adapter makes of a recorded answer, as JSON."`
	Corpus adapterCorpusCmd `cmd:"" help:"Run a folder of recordings under every way of delivering and cutting them."`
}

// folder is where adapters of one's own are.
type folder struct {
	Adapters string `help:"Folder with adapters of your own, beside the ones that are built in." type:"existingdir" placeholder:"DIR"`
}

type adapterListCmd struct{ folder }

// Run lists the adapters; broken ones make it fail.
func (a adapterListCmd) Run(c *console) error {
	e, err := lua.New(a.Adapters, nil)
	if err != nil {
		return err
	}
	defer e.Close()
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tVERSION\tEXTENDS\tFRAMING\tBASE")
	broken := false
	for _, s := range e.List() {
		if s.Err != "" {
			broken = true
			fmt.Fprintf(w, "%s\tbroken: %s\n", s.Info.Name, s.Err)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.Info.Name, s.Info.Version, s.Info.Extends, s.Info.Framing, s.Info.BaseURL)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if broken {
		return errUnwell
	}
	return nil
}

type adapterCheckCmd struct {
	folder
	File string `arg:"" help:"The adapter's file, NAME.lua." type:"existingfile" placeholder:"FILE.lua"`
}

// Run checks one file.
func (a adapterCheckCmd) Run(c *console) error {
	e, err := lua.New(a.Adapters, nil)
	if err != nil {
		return err
	}
	defer e.Close()
	info, err := e.Check(c.ctx, a.File)
	if err != nil {
		fmt.Fprintln(c.errout, err)
		return errUnwell
	}
	if info.Version == "" {
		fmt.Fprintf(c.out, "%s: good; a part for other adapters\n", a.File)
		return nil
	}
	fmt.Fprintf(c.out, "%s: good; %s %s, %s\n", a.File, info.Name, info.Version, info.Framing)
	return nil
}

type adapterReplayCmd struct {
	folder
	Adapter     string `help:"The adapter's name, or its file NAME.lua." required:"" placeholder:"NAME"`
	Status      int    `help:"HTTP status of the answer." default:"200"`
	ContentType string `help:"Content-Type of the answer; by default told by the file's ending." placeholder:"TYPE"`
	Headers     string `help:"File with further headers of the answer, lines Name: value." type:"existingfile" placeholder:"FILE"`
	Material    bool   `help:"Show the replay material itself besides."`
	File        string `arg:"" help:"The recorded body: server-sent events, lines of JSON, one JSON value or an AWS event stream." type:"existingfile"`
}

// Run replays one file. A failure of the vendor is a result like another.
func (a adapterReplayCmd) Run(c *console) error {
	dir, name := a.Adapters, a.Adapter
	if strings.HasSuffix(name, ".lua") {
		dir, name = filepath.Dir(name), strings.TrimSuffix(filepath.Base(name), ".lua")
	}
	e, err := lua.New(dir, nil)
	if err != nil {
		return err
	}
	defer e.Close()
	ad, err := e.Adapter(name)
	if err != nil {
		return err
	}
	body, err := os.ReadFile(a.File)
	if err != nil {
		return err
	}
	rec := replay.New(a.File, body, ad.Info(), a.Status, a.ContentType)
	if a.Headers != "" {
		text, err := os.ReadFile(a.Headers)
		if err != nil {
			return err
		}
		if rec.Header, err = replay.ParseHeaders(text); err != nil {
			return fmt.Errorf("%s: %w", a.Headers, err)
		}
	}
	got, err := replay.Unified(c.ctx, e, name, rec)
	if err != nil {
		return err
	}
	if !a.Material {
		got.Material = nil
	}
	enc := json.NewEncoder(c.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(got)
}

type adapterCorpusCmd struct {
	folder
	Adapter string `help:"Use this adapter for all; by default each family's own." placeholder:"NAME"`
	Verbose bool   `help:"Name also what held." short:"v"`
	Dir     string `arg:"" help:"Folder with expected.jsonl and the files that it names." type:"existingdir"`
}

// Run checks a folder of recordings.
func (a adapterCorpusCmd) Run(c *console) error {
	e, err := lua.New(a.Adapters, nil)
	if err != nil {
		return err
	}
	defer e.Close()
	choose := func(name string) string {
		if a.Adapter != "" {
			return a.Adapter
		}
		return replay.AdapterFor(name, e.Knows)
	}
	recs, err := replay.Load(a.Dir, func(name string) providers.Info { return e.Info(choose(name)) })
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FILE\tADAPTER\tWAYS\tFAILED")
	var notes []string
	failed := 0
	for _, rec := range recs {
		outcomes, err := replay.Check(c.ctx, e, choose(rec.Name), rec)
		if c.ctx.Err() != nil {
			return c.ctx.Err()
		}
		bad := 0
		for _, o := range outcomes {
			if len(o.Diffs) > 0 {
				bad++
				notes = append(notes, fmt.Sprintf("%s: %s:\n    %s", rec.Name, o.Name, strings.Join(o.Diffs, "\n    ")))
			} else if a.Verbose {
				notes = append(notes, fmt.Sprintf("%s: %s: held", rec.Name, o.Name))
			}
		}
		if err != nil {
			bad++
			notes = append(notes, fmt.Sprintf("%s: %s", rec.Name, err))
		}
		if bad > 0 {
			failed++
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\n", rec.Name, choose(rec.Name), len(outcomes), bad)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, n := range notes {
		fmt.Fprintln(c.out, n)
	}
	fmt.Fprintf(c.out, "%d recordings, %d failed\n", len(recs), failed)
	if failed > 0 {
		return errUnwell
	}
	return nil
}
