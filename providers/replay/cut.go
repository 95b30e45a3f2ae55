package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing/iotest"

	"homeagent/messages"
	"homeagent/providers"
	"homeagent/providers/framing"
)

// Cut is a stream that ends too early.
type Cut struct {
	// Name begins with C and a number.
	Name string
	Body []byte
	End  int
}

// marks are the places in a stream that cuts depend on.
type marks struct {
	// ends has for each event up to the finish where it ends.
	ends []int
	// finish is the event that ends the answer, args the last one before or at
	// it that has arguments of a call; -1 for none.
	finish, args int
}

// find feeds a stream to the adapter, event by event, up to the one that
// finishes the answer.
func find(ctx context.Context, adapters providers.Adapters, adapter string, rec Recording) (marks, error) {
	m := marks{finish: -1, args: -1}
	a, err := adapters.Adapter(adapter)
	if err != nil {
		return m, err
	}
	src := providers.Source{Name: "replay", Adapter: adapter, BaseURL: "http://replay.invalid/v1", Model: "model"}
	x, err := a.Open(ctx, &src, &providers.Request{CompletionRequest: Ask("hello"), Stream: true}, nil)
	if err != nil {
		return m, err
	}
	defer x.Close()
	in := &counter{r: iotest.OneByteReader(bytes.NewReader(rec.Body))}
	rd, err := framing.New(rec.Kind(), in, 0)
	if err != nil {
		return m, err
	}
	for i := 0; ; i++ {
		ev, err := rd.Next()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return m, err
		}
		m.ends = append(m.ends, in.n)
		pieces, err := x.Event(ctx, ev)
		if err != nil {
			return m, err
		}
		for _, p := range pieces {
			for _, t := range p.Tools {
				if t.Args != "" {
					m.args = i
				}
			}
			if p.Finish != messages.Finish_FINISH_UNSPECIFIED || p.Done {
				m.finish = i
			}
			if p.Fault != nil {
				return marks{finish: -1, args: -1}, nil
			}
		}
		if m.finish >= 0 {
			return m, nil
		}
	}
}

type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// Cuts gives truncated forms of a stream; none where it has no end mark.
func Cuts(ctx context.Context, adapters providers.Adapters, adapter string, rec Recording) ([]Cut, error) {
	m, err := find(ctx, adapters, adapter, rec)
	if err != nil || m.finish < 0 {
		return nil, err
	}
	start := func(event int) int {
		if event == 0 {
			return 0
		}
		return m.ends[event-1]
	}
	inside := func(event int) int { return (start(event) + m.ends[event]) / 2 }
	b := rec.Body
	out := []Cut{{Name: "C4 nothing", Body: nil}, {Name: "C2 inside the last event", Body: b[:inside(m.finish)]}}
	if m.finish > 0 {
		out = append(out,
			Cut{Name: "C1 before the end mark", Body: b[:start(m.finish)]},
			Cut{Name: "C5 reset before the end mark", Body: b[:start(m.finish)], End: EndReset},
			Cut{Name: "C6 stall before the end mark", Body: b[:start(m.finish)], End: EndStall},
		)
	}
	if m.args >= 0 {
		out = append(out, Cut{Name: "C3 inside the arguments", Body: b[:inside(m.args)]})
	}
	out = append(out,
		Cut{Name: "C5 reset inside an event", Body: b[:inside(m.finish)], End: EndReset},
		Cut{Name: "C6 stall inside an event", Body: b[:inside(m.finish)], End: EndStall},
	)
	rnd := rand.New(rand.NewPCG(uint64(len(b)), 7))
	// Before the first event there is nothing that could be cut.
	for i := range 10 {
		if first, last := m.ends[0], inside(m.finish); last > first {
			out = append(out, Cut{Name: fmt.Sprintf("C2 anywhere %c", 'a'+i), Body: b[:first+rnd.IntN(last-first)]})
		}
	}
	return out, nil
}
