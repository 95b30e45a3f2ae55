package main

import (
	"fmt"
	"strconv"
	"strings"

	"homeagent/internal/client"
)

type queueGroup struct {
	List    queueCmd        `cmd:"" default:"withargs" help:"Show what runs, is suspended, parked and waits."`
	Promote queuePromoteCmd `cmd:"" help:"Put a waiting input at the head of its level."`
	Cancel  queueCancelCmd  `cmd:"" help:"End an input that waits, or waits for an approval, without running it."`
	Edit    queueEditCmd    `cmd:"" help:"Give a waiting input another text."`
	Level   queueLevelCmd   `cmd:"" help:"Give a waiting input another level."`
}

type queueCmd struct {
	Agent string `help:"Agent; default main." placeholder:"NAME"`
	Most  int    `short:"n" help:"Most waiting inputs to list." default:"200"`
}

func (q *queueCmd) Run(c *console, node *client.Client) error {
	s, err := node.Scheduler(c.ctx, q.Agent, q.Most)
	if err != nil {
		return err
	}
	return c.show(s, func() { drawQueue(c, s) })
}

func drawQueue(c *console, s *client.Scheduler) {
	t := &table{head: []string{"", "TASK", "LEVEL", "FOR", "PHASE", "WHO", "CHANNEL", "CONVERSATION", "PREEMPTED", "TEXT"}, less: []int{7, 6, 8, 5, 4}}
	add := func(where, color string, w *client.Work) {
		level := fmt.Sprint(w.Level)
		if w.Effective != w.Level {
			level += "→" + fmt.Sprint(w.Effective)
		}
		t.add(cell{where, color}, w.TaskID, level, ago(w.Since), w.Phase, short(clean(w.Principal), 20), w.Channel, w.Conversation,
			w.Preempted, short(clean(w.Text), 50))
	}
	if s.Running != nil {
		add("running", good, s.Running)
	}
	for i := range s.Stack {
		add("suspended", warn, &s.Stack[i])
	}
	for i := range s.Parked {
		add("parked", warn, &s.Parked[i])
	}
	for i := range s.Queue {
		add(fmt.Sprintf("%d.", i+1), "", &s.Queue[i])
	}
	if len(t.rows) == 0 {
		c.printf("idle\n")
	} else {
		t.write(c)
	}
	if more := s.Waiting - len(s.Queue); more > 0 {
		c.printf("%s\n", c.paint(quiet, fmt.Sprintf("and %d more", more)))
	}
	n := s.Counters
	c.printf("%s\n", c.paint(quiet, fmt.Sprintf("%d offered, %d started, %d suspended, %d resumed, %d steered, %d parked, %d being stopped",
		n.Offered, n.Started, n.Suspended, n.Resumed, n.Steered, n.Parked, s.StopQuota)))
}

// queueInput names the input that a change is about.
type queueInput struct {
	ID string `arg:"" help:"The input; waiter queue shows it."`
}

func showWork(c *console, w *client.Work, err error, did string) error {
	if err != nil {
		return err
	}
	return c.show(w, func() {
		c.printf("%s %s", w.TaskID, did)
		if w.Position > 0 {
			c.printf(", %d. at level %d", w.Position, w.Level)
		}
		c.printf("\n")
	})
}

type queuePromoteCmd struct{ queueInput }

func (q *queuePromoteCmd) Run(c *console, node *client.Client) error {
	w, err := node.Promote(c.ctx, q.ID)
	return showWork(c, w, err, "promoted")
}

type queueCancelCmd struct{ queueInput }

func (q *queueCancelCmd) Run(c *console, node *client.Client) error {
	w, err := node.CancelWaiting(c.ctx, q.ID)
	if w != nil {
		w.Position = 0
	}
	return showWork(c, w, err, "cancelled")
}

type queueEditCmd struct {
	queueInput
	Text []string `arg:"" help:"The new text."`
}

func (q *queueEditCmd) Run(c *console, node *client.Client) error {
	text := strings.Join(q.Text, " ")
	w, err := node.ChangeWaiting(c.ctx, q.ID, client.ChangeWaiting{Text: &text})
	return showWork(c, w, err, "edited")
}

type queueLevelCmd struct {
	queueInput
	Level level `arg:"" help:"The new level, 0 to 3."`
}

func (q *queueLevelCmd) Run(c *console, node *client.Client) error {
	w, err := node.ChangeWaiting(c.ctx, q.ID, client.ChangeWaiting{Level: client.Level(q.Level.n)})
	return showWork(c, w, err, "moved")
}

// level is a level as people write it: one digit, 0 to 3.
type level struct {
	n   int
	set bool
}

// UnmarshalText takes the levels that there are for people.
func (l *level) UnmarshalText(b []byte) error {
	s := string(b)
	if s == "" {
		return nil
	}
	if len(s) != 1 || s[0] < '0' || s[0] > '3' {
		return fmt.Errorf("there is no level %s: levels are from 0 to 3", strconv.Quote(s))
	}
	l.n, l.set = int(s[0]-'0'), true
	return nil
}
