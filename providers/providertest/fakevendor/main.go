// Command fakevendor serves a scripted model server for tests and benchmarks
// that run the node as a process.
//
//	fakevendor -script FILE [-listen 127.0.0.1:0]
//
// It prints "ready URL" when it takes requests, and ends on SIGINT or SIGTERM.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"homeagent/providers/providertest"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "fakevendor:", err)
		os.Exit(1)
	}
}

func run() error {
	script := flag.String("script", "", "script file (JSON)")
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on")
	flag.Parse()
	s, err := providertest.LoadScript(*script)
	if err != nil {
		return err
	}
	v, err := providertest.Start(*listen, s)
	if err != nil {
		return err
	}
	defer v.Close()
	if _, err := fmt.Fprintln(os.Stdout, "ready", v.URL()); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
	return nil
}
