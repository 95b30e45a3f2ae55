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

const (
	prompt = "> "
	// defaultWidth is what the line editor takes where a terminal tells no size.
	defaultWidth = 80
)

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
	}{&keys{r: in, presses: presses}, shown{out}}, prompt)
	editing := wideLine{prompt: len(prompt), width: defaultWidth}
	if w, h, err := term.GetSize(int(out.Fd())); err == nil && w > 0 && h > 0 { // some tell no size: the default is kept
		editing.width = w
		if err := t.SetSize(w, h); err != nil {
			return lines{}, nil, errors.Join(err, term.Restore(int(in.Fd()), old))
		}
	}
	t.AutoCompleteCallback = editing.key
	ch := make(chan string)
	go func() {
		defer close(ch)
		for {
			line, err := t.ReadLine()
			if err != nil {
				return
			}
			select {
			case ch <- unfilled(line):
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
