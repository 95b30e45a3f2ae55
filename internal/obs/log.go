package obs

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
)

// Format is the shape of a log line.
type Format string

const (
	// FormatText is one line of key=value pairs, for people.
	FormatText Format = "text"
	// FormatJSON is one JSON object per line, for machines.
	FormatJSON Format = "json"
)

// Options says where log lines go. The zero value logs nothing anywhere at level info.
type Options struct {
	// Level is the lowest level that is written; it can be changed later by SetLevel. Zero is info.
	Level slog.Level
	// Format is the shape of a line in both places. Empty is text.
	Format Format
	// Stderr receives every line besides the file; nil leaves it out.
	Stderr io.Writer
	// File is the path of the log file; empty means no file. Its folder must exist. Mode 0600: log lines are private.
	File string
	// MaxBytes is the size at which the file is set aside as File.1 (and .1 as .2 and so on). Zero is 16 MiB.
	MaxBytes int64
	// Keep is how many files set aside remain, at least 1. Zero is 4.
	Keep int
}

// Log owns the outlets of a process's log. All methods are safe for concurrent use. Lines are written by the goroutine
// that logs, with one write call per outlet and line, so lines of several goroutines never mix.
type Log struct {
	level   *slog.LevelVar
	secrets *Secrets
	handler slog.Handler
	file    *rotator
	lost    atomic.Uint64
}

// Open makes the log described by o. It fails where the format is unknown or the file cannot be opened. The caller
// closes it, after everybody who logs has stopped.
func Open(o Options) (*Log, error) {
	l := &Log{level: new(slog.LevelVar), secrets: NewSecrets()}
	l.level.Set(o.Level)
	out := &outlet{log: l}
	h, err := newHandler(o.Format, out, l.level) // before the file, so that a wrong format leaves nothing open
	if err != nil {
		return nil, err
	}
	if o.Stderr != nil {
		out.to = append(out.to, o.Stderr)
	}
	if o.File != "" {
		l.file, err = openRotator(o.File, o.MaxBytes, o.Keep)
		if err != nil {
			return nil, fmt.Errorf("open log file: %w", err)
		}
		out.to = append(out.to, l.file)
	}
	l.handler = h
	return l, nil
}

// Logger returns the logger of one component, which marks each line with component=name. A component is named after
// its package or actor path ("store", "agents/main/scheduler").
func (l *Log) Logger(component string) *slog.Logger {
	return slog.New(l.handler).With(slog.String("component", component))
}

// Runtime returns a factory of loggers for a library that logs by itself, in the form in which the actor runtime wants
// it. What the library calls informational is debug to us (it reports every dead letter and every recovered handler so,
// which the node reports itself); its warnings and errors keep their level.
func (l *Log) Runtime(component string) func() *slog.Logger {
	h := demoted{l.handler}
	return func() *slog.Logger {
		return slog.New(h).With(slog.String("component", component))
	}
}

// Secrets is the set of values that must never be written; add to it as soon as a secret is read.
func (l *Log) Secrets() *Secrets { return l.secrets }

// SetLevel changes the lowest level that is written, from the next line on.
func (l *Log) SetLevel(v slog.Level) { l.level.Set(v) }

// Level is the lowest level that is written.
func (l *Log) Level() slog.Level { return l.level.Level() }

// Lost is how many times an outlet did not take a line (disk full, terminal gone). Logging goes on regardless: a node
// that cannot log still answers; the metrics page shows this number.
func (l *Log) Lost() uint64 { return l.lost.Load() }

// Close closes the log file after syncing it. Lines logged later go to Stderr alone and count as lost in the file.
// A second Close does nothing.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// ParseLevel reads debug, info, warn or error in any case.
func ParseLevel(s string) (slog.Level, error) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("%w %q: use debug, info, warn or error", ErrLevel, s)
}

// ParseFormat reads text or json in any case.
func ParseFormat(s string) (Format, error) {
	switch f := Format(strings.ToLower(strings.TrimSpace(s))); f {
	case FormatText, FormatJSON:
		return f, nil
	default:
		return "", fmt.Errorf("%w %q: use text or json", ErrFormat, s)
	}
}

func newHandler(f Format, w io.Writer, level slog.Leveler) (slog.Handler, error) {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: hideByKey}
	switch f {
	case FormatText, "":
		return slog.NewTextHandler(w, o), nil
	case FormatJSON:
		return slog.NewJSONHandler(w, o), nil
	default:
		return nil, fmt.Errorf("%w %q: use text or json", ErrFormat, f)
	}
}

// outlet is the last stage of every line: secrets are cut out of the bytes as they will be written, whatever attribute,
// group, error or struct they came from; then each outlet gets the line in one write.
type outlet struct {
	log *Log
	to  []io.Writer
}

func (o *outlet) Write(p []byte) (int, error) {
	line := o.log.secrets.Clean(p)
	for _, w := range o.to {
		if _, err := w.Write(line); err != nil {
			o.log.lost.Add(1)
		}
	}
	// A failing outlet must not keep the others from their line, and the handler's caller could do nothing with it.
	return len(p), nil
}

// demoted passes records on with everything below warning lowered to debug.
type demoted struct{ inner slog.Handler }

func lower(v slog.Level) slog.Level {
	if v < slog.LevelWarn {
		return min(v, slog.LevelDebug)
	}
	return v
}

func (d demoted) Enabled(ctx context.Context, v slog.Level) bool {
	return d.inner.Enabled(ctx, lower(v))
}

func (d demoted) Handle(ctx context.Context, r slog.Record) error {
	r.Level = lower(r.Level)
	return d.inner.Handle(ctx, r)
}

func (d demoted) WithAttrs(as []slog.Attr) slog.Handler { return demoted{d.inner.WithAttrs(as)} }

func (d demoted) WithGroup(name string) slog.Handler { return demoted{d.inner.WithGroup(name)} }
