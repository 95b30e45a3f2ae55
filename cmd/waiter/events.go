package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"homeagent/internal/client"
)

type eventsCmd struct {
	Types []string `help:"Types wanted, separated by commas; default all." placeholder:"TYPE"`
	Task  string   `help:"Only events of this task." placeholder:"ID"`
	After string   `help:"Begin after this event, <epoch>-<sequence>." placeholder:"ID"`
	Count int      `short:"n" help:"End after so many; 0 means never."`
}

func (e *eventsCmd) Run(c *console, node *client.Client) error {
	st, err := node.Events(c.ctx, client.StreamOptions{Types: e.Types, Task: e.Task, After: e.After})
	if err != nil {
		return err
	}
	defer st.Close()
	for n := 0; e.Count == 0 || n < e.Count; {
		f, err := st.Next()
		switch {
		case c.ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case f.Sync != nil:
			_, _ = fmt.Fprintf(c.errout, "waiter: events are missing here (%s)\n", f.Sync.Reason)
		case f.Event != nil:
			n++
			if err := c.event(f.Event); err != nil {
				return err
			}
		}
	}
	return nil
}

// event writes one event on one line.
func (c *console) event(e *client.Event) error {
	if c.json {
		b, err := json.Marshal(e)
		if err != nil {
			return err
		}
		c.printf("%s\n", b)
		return nil
	}
	text := e.Text
	switch {
	case e.Task != nil:
		text = strings.Join(strings.Fields(strings.Join([]string{e.Task.Change, e.Task.Victim, e.Task.End, e.Task.Reason}, " ")), " ")
	case e.Tool != nil && e.Tool.Result == nil:
		text = e.Tool.Name + " " + string(e.Tool.Arguments)
	case e.Tool != nil && e.Tool.Result.Error != nil:
		text = e.Tool.Name + " failed: " + e.Tool.Result.Error.Text()
	case e.Tool != nil:
		text = e.Tool.Name + " → " + e.Tool.Result.Content
	case e.Chain != nil && e.Chain.Result != nil:
		text = fmt.Sprintf("round %d: %s/%s %s", e.Chain.Round, e.Chain.Result.Source, e.Chain.Result.Model, e.Chain.Result.Finish)
	case e.Stage != nil:
		text = fmt.Sprintf("%s %dµs", e.Stage.Stage, e.Stage.TookUS)
	case e.Error != nil:
		text = e.Error.Code + ": " + e.Error.Message
	case e.Approval != nil:
		text = e.Approval.ID + " " + e.Approval.State + " " + e.Approval.Tool + " " + string(e.Approval.Arguments)
	case e.System != nil:
		text = e.System.Code + " " + e.System.Path + " " + e.Text
	}
	c.printf("%s %s %s %s\n", c.paint(quiet, e.At.Local().Format("15:04:05.000")),
		c.paint(strong, fmt.Sprintf("%-15s", e.Type)), c.paint(quiet, e.TaskID), short(clean(text), 160))
	return nil
}

type logsCmd struct {
	Follow bool  `short:"f" help:"Go on as lines come."`
	Bytes  int64 `default:"16384" help:"How many bytes of the end are shown first."`
}

const logPoll = 200 * time.Millisecond

// Run reads the file of the node, which need not run: why it stopped is what people want to know.
func (l *logsCmd) Run(c *console, flags *cli) error {
	if flags.Node != "" {
		return errors.New("logs are read from the data folder: use --data on the node's own machine")
	}
	path, err := client.LogFile(flags.Data)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no log %s: no node has run on this data folder; name another one with --data", path)
	}
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	out := c.out
	if c.json {
		out = &records{w: c.out}
	}
	defer func() { _ = f.Close() }()
	if err := skipTo(f, l.Bytes); err != nil {
		return err
	}
	if _, err := io.Copy(out, f); err != nil || !l.Follow {
		return err
	}
	tick := time.NewTicker(logPoll)
	defer tick.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return nil
		case <-tick.C:
		}
		if _, err := io.Copy(out, f); err != nil {
			return err
		}
		if next, ok := rotated(path, f); ok {
			_, err := io.Copy(out, f) // what came last before it was set aside
			_ = f.Close()
			if f = next; err != nil {
				return err
			}
		}
	}
}

// skipTo goes to the first whole line of the last n bytes.
func skipTo(f *os.File, n int64) error {
	info, err := f.Stat()
	if err != nil || info.Size() <= n {
		return err
	}
	if _, err := f.Seek(-n, io.SeekEnd); err != nil {
		return err
	}
	one := make([]byte, 1)
	for {
		if _, err := f.Read(one); err != nil {
			return err
		}
		if one[0] == '\n' {
			return nil
		}
	}
}

// rotated opens the log anew when another file has its name now.
func rotated(path string, f *os.File) (*os.File, bool) {
	now, err := os.Stat(path)
	if err != nil {
		return nil, false // between two names; the next look finds it
	}
	old, err := f.Stat()
	if err != nil || os.SameFile(now, old) {
		return nil, false
	}
	next, err := os.Open(path)
	return next, err == nil
}
