package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"homeagent/actors/kernel"
	"homeagent/internal/client"
)

type backupCmd struct {
	File    string `arg:"" help:"The file to write; it must not be there." type:"path"`
	Data    string `help:"Data folder of the running node; by default the user's data folder + /homed." env:"HOMED_DATA" placeholder:"DIR"`
	WithKey bool   `help:"Put the key of the secrets in: whoever has the file can then read them."`
}

// askError is a failure to ask at all, which has an exit code of its own.
type askError struct{ error }

// Unwrap gives the cause.
func (e askError) Unwrap() error { return e.error }

func interruptible() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

// run writes the backup beside its final name, tries it out, and renames it.
func (b backupCmd) run(stdout io.Writer) error {
	ctx, stop := interruptible()
	defer stop()
	if _, err := os.Lstat(b.File); err == nil {
		return fmt.Errorf("%s is there already; give another name or remove it", b.File)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return askError{err}
	}
	node, err := client.Open(client.Options{Data: b.Data})
	if err != nil {
		return askError{err}
	}
	defer node.Close()
	part := b.File + ".part"
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return askError{err}
	}
	got, err := b.fill(ctx, node, f)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(part, b.File)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	_, err = fmt.Fprintf(stdout, "backup %s of node %s: %d bytes, %d records, restored once to try it\n", b.File, got.Manifest.Node, got.Bytes, got.Store.Pairs)
	if err != nil {
		return err
	}
	return notes(stdout, got, b.WithKey)
}

func (b backupCmd) fill(ctx context.Context, node *client.Client, f *os.File) (kernel.Backed, error) {
	if _, err := node.Backup(ctx, f, b.WithKey); err != nil {
		if errors.Is(err, client.ErrUnreachable) {
			err = askError{err}
		}
		return kernel.Backed{}, err
	}
	if err := f.Sync(); err != nil {
		return kernel.Backed{}, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return kernel.Backed{}, err
	}
	got, err := kernel.VerifyBackup(ctx, bufio.NewReader(f), filepath.Dir(b.File))
	if err != nil {
		return got, fmt.Errorf("the backup was not good and is removed: %w", err)
	}
	return got, nil
}

// notes says what is not in a backup.
func notes(out io.Writer, b kernel.Backed, wanted bool) error {
	var errs []error
	for _, name := range b.Manifest.LeftOut {
		_, err := fmt.Fprintf(out, "left out: %s (too large, or not readable)\n", name)
		errs = append(errs, err)
	}
	if !b.Manifest.WithKey && !wanted {
		_, err := fmt.Fprintln(out, "the key of the secrets is not in it: keep secret.key of the data folder apart, or use --with-key")
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

type restoreCmd struct {
	File string `arg:"" help:"A backup." type:"path"`
	Data string `help:"The data folder to make; new or empty." required:"" placeholder:"NEWDIR" type:"path"`
}

func (r restoreCmd) run(stdout io.Writer) error {
	ctx, stop := interruptible()
	defer stop()
	f, err := os.Open(r.File)
	if err != nil {
		return askError{err}
	}
	got, err := kernel.Restore(ctx, f, r.Data)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "restored node %s of %s into %s: %d records, %d files\n",
		got.Manifest.Node, got.Manifest.At.Format("2006-01-02 15:04:05 MST"), r.Data, got.Store.Pairs, len(got.Manifest.Files))
	if err == nil && !got.Manifest.WithKey {
		_, err = fmt.Fprintf(stdout, "stored secrets need their key: put secret.key into %s, or set the secrets again\n", r.Data)
	}
	return err
}
