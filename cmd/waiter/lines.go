package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/term"
)

// lines is where a conversation comes from and goes to.
type lines struct {
	in         <-chan string // closed at the end of the input
	out        io.Writer
	interrupts <-chan os.Signal
	// person says that somebody sits at a terminal.
	person bool
}

// maxLine bounds a line that does not come from a terminal, in bytes.
const maxLine = 1 << 20

// openLines reads with line editing from a terminal and plainly from anything else. restore brings the terminal back.
// The goroutine that reads ends with the input; at a terminal it ends with the process, since a read can not be taken
// back.
func openLines(ctx context.Context, c *console) (l lines, restore func(), err error) {
	in, ok := c.in.(*os.File)
	out, isFile := c.out.(*os.File)
	if !ok || !isFile || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return lines{in: scan(ctx, c.in), out: c.out, interrupts: c.interrupts}, func() {}, nil
	}
	old, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return lines{}, nil, err
	}
	presses := make(chan os.Signal, 4)
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{&keys{r: in, presses: presses}, out}, "> ")
	if w, h, err := term.GetSize(int(out.Fd())); err == nil && w > 0 && h > 0 { // some tell no size: the default is kept
		if err := t.SetSize(w, h); err != nil {
			return lines{}, nil, errors.Join(err, term.Restore(int(in.Fd()), old))
		}
	}
	ch := make(chan string)
	go func() {
		defer close(ch)
		for {
			line, err := t.ReadLine()
			if err != nil {
				return
			}
			select {
			case ch <- line:
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines{in: ch, out: t, interrupts: presses, person: true}, func() {
		_ = term.Restore(int(in.Fd()), old) // the process ends anyhow
	}, nil
}

func scan(ctx context.Context, r io.Reader) <-chan string {
	ch := make(chan string)
	go func() {
		defer close(ch)
		sc := bufio.NewScanner(r)
		sc.Buffer(nil, maxLine)
		for sc.Scan() {
			select {
			case ch <- sc.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return ch
}

// keys takes Ctrl-C out of what a raw terminal sends, where it is a character and no signal.
type keys struct {
	r       io.Reader
	presses chan<- os.Signal
}

const ctrlC = 3

func (k *keys) Read(p []byte) (int, error) {
	for {
		n, err := k.r.Read(p)
		kept := p[:0]
		for _, b := range p[:n] {
			if b != ctrlC {
				kept = append(kept, b)
				continue
			}
			select {
			case k.presses <- os.Interrupt:
			default: // several presses waiting say no more than one
			}
		}
		if len(kept) > 0 || err != nil || n == 0 {
			return len(kept), err
		}
	}
}
