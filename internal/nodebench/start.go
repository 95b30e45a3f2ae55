package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// binarySize is the size of the stripped program.
func binarySize(path string) (Figure, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Figure{}, err
	}
	f, err := sample{float64(info.Size()) / 1e6}.figure("binary size, stripped", "MB", 1)
	return f.within("p50", 28), err
}

// warmStarts are not counted: they bring the program into the page cache.
const warmStarts = 3

// starts measures from the start of the process to its ready line: over a fresh folder each time, and over one folder
// that was left in order. seeded is a folder that holds many events.
func (b *bench) starts(ctx context.Context, seeded string) error {
	existing := filepath.Join(b.dir, "existing")
	rows := []struct {
		name string
		data func(i int) string
		note string
	}{
		{"start to ready, fresh folder", func(i int) string { return filepath.Join(b.dir, fmt.Sprint("fresh", i)) }, "process start to the ready line; the program is in the page cache"},
		{"start to ready, existing folder", func(int) string { return existing }, ""},
		{fmt.Sprintf("start to ready, %d events", b.events), func(int) string { return seeded }, ""},
	}
	for _, row := range rows {
		var took sample
		for i := range warmStarts + b.starting {
			data := row.data(i)
			err := use(ctx, b.binary, data, func(n *node) error {
				if i >= warmStarts {
					took.add(n.took)
				}
				return nil
			})
			if err != nil {
				return fmt.Errorf("%s: %w", row.name, err)
			}
			if data != existing && data != seeded {
				if err := os.RemoveAll(data); err != nil {
					return err
				}
			}
		}
		f, err := took.figure(row.name, "ms", b.starting)
		if err != nil {
			return err
		}
		f.Note = row.note
		b.report(f.within("p50", 100))
	}
	return nil
}
