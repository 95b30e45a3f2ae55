package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"homeagent/actors/kernel"
)

type doctorCmd struct {
	Data   string `help:"Data folder; by default the user's data folder + /homed." env:"HOMED_DATA" placeholder:"DIR"`
	Listen string `help:"Address that the node would listen at." env:"HOMED_LISTEN" placeholder:"HOST:PORT"`
	JSON   bool   `name:"json" help:"Print the findings as JSON."`
}

// run prints the findings; well is false when one of them is an error.
func (d doctorCmd) run(stdout io.Writer) (well bool, err error) {
	ctx, stop := interruptible()
	defer stop()
	got, err := kernel.Doctor(ctx, kernel.DoctorOptions{Data: d.Data, Listen: d.Listen, Environ: os.Environ()})
	if err != nil {
		return false, askError{err}
	}
	if d.JSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return got.Well(), e.Encode(got)
	}
	runs := "no node runs"
	if got.Running {
		runs = "a node runs"
	}
	_, err = fmt.Fprintf(stdout, "%s: %s; %d findings\n", got.Data, runs, len(got.Findings))
	for _, f := range got.Findings {
		if err == nil {
			_, err = fmt.Fprintf(stdout, "%-8s %s\n         %s\n", f.Severity, f.ID, f.Evidence)
		}
		if err == nil && f.Fix != "" {
			_, err = fmt.Fprintf(stdout, "         fix: %s\n", f.Fix)
		}
	}
	return got.Well(), err
}
