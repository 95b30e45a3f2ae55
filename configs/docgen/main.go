// Command docgen writes the documentation of the settings to the file named as
// its argument.
package main

import (
	"fmt"
	"os"

	"homeagent/configs"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: docgen FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(configs.Markdown()), 0o644); err != nil { //nolint:gosec // documentation is for everybody
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
