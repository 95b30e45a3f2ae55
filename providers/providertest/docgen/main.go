// Command docgen writes the table of what model adapters can do, and of what
// shows it, to the file named as its argument.
package main

import (
	"fmt"
	"os"

	"homeagent/providers/lua"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: docgen FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(file string) error {
	e, err := lua.New("", nil)
	if err != nil {
		return err
	}
	defer e.Close()
	text, err := document(e.List())
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644) //nolint:gosec // documentation is for everybody
}
