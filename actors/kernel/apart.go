package kernel

import (
	"errors"
	"io"
	"slices"
	"strings"

	"homeagent/configs"
	"homeagent/pluginhost/self"
	"homeagent/providers/lua"
	"homeagent/providers/worker"
)

// workerMemory bounds a worker, in bytes.
const workerMemory = 512 << 20

// Worker serves one adapter's script on two pipes until in ends: what the program does that Options.Worker names. It
// gives up all else that the process could do first.
func Worker(in io.Reader, out io.Writer) error {
	if err := self.Confine(workerMemory); err != nil {
		return err
	}
	return worker.Serve(in, out, func() { _ = self.Renew() }) // without it the time of earlier calls counts too
}

var errNoWorker = errors.New("this program runs only files that were confirmed (waiter providers trust FILE)")

// adapterRules say which adapter files may run in the node: those that people have confirmed.
func (w *world) adapterRules() *lua.Rules {
	trusted := func() []string { return w.settings().List(configs.KeyLLMTrusted) }
	return &lua.Rules{
		Trusted: func(name, sum string) bool { return slices.Contains(trusted(), configs.TrustedAdapter(name, sum)) },
		Print:   func() string { return strings.Join(trusted(), "\n") },
		Apart: func(name string, files map[string][]byte) (lua.Apart, error) {
			if len(w.opt.Worker) == 0 {
				return nil, errNoWorker
			}
			start := func() (worker.Process, error) {
				return self.Command{Path: w.opt.Worker[0], Args: w.opt.Worker[1:]}.Start()
			}
			return worker.New(start, name, w.layout.Adapters()+"/"+name+".lua", files, w.log.Logger("adapters"))
		},
	}
}
