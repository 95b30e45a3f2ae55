package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
)

// willing is a machine that is ready at once; mute never says so.
type willing struct{ mute bool }

func (m willing) Step(_ time.Time, e kit.Event) []kit.Effect {
	if _, ok := e.Msg.(kit.Started); ok && !m.mute {
		return []kit.Effect{kit.Ready{}}
	}
	return nil
}

func stand(path string, mute bool) Row {
	r := row(path, nil, need(kit.Facility(path)))
	r.Restart.StopTimeout = time.Second
	r.Make = func(*world, string, proto.Message) (kit.Props, error) {
		return kit.Props{New: func() kit.Machine { return willing{mute} }}, nil
	}
	return r
}

// A layer is awaited: who is late is named, and so is a facility that was declared and not produced.
func TestLayersAreAwaited(t *testing.T) {
	n := boot(t, options(t))
	defer closeNode(t, n)
	n.w.opt.ReadyIn = 50 * time.Millisecond
	layer := []Row{stand("x/good", false), stand("x/late", true)}
	err := n.startLayer(context.Background(), 7, layer)
	if err == nil || !strings.Contains(err.Error(), "layer 7") || !strings.Contains(err.Error(), "x/late") || strings.Contains(err.Error(), "x/good") {
		t.Errorf("late: %v", err)
	}
	n.layers = append(n.layers, layer)
	err = n.startLayer(context.Background(), 8, []Row{row("y", need("x/late"), need("y"))})
	if err == nil || !strings.Contains(err.Error(), "x/late") {
		t.Errorf("not produced: %v", err)
	}
	gone, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("the person gave up"))
	n.w.opt.ReadyIn = time.Hour
	if err = n.startLayer(gone, 9, []Row{stand("z", true)}); err == nil || !strings.Contains(err.Error(), "gave up") {
		t.Errorf("cancelled: %v", err)
	}
	broken := stand("v", false)
	broken.Make = func(*world, string, proto.Message) (kit.Props, error) {
		return kit.Props{}, errors.New("cannot be made")
	}
	if err = n.startLayer(context.Background(), 10, []Row{broken}); err == nil || !strings.Contains(err.Error(), "cannot be made") {
		t.Errorf("broken: %v", err)
	}
}

// The refusal of a second node names the process of the first.
func TestSecondNodeNamesTheFirst(t *testing.T) {
	opt := options(t)
	n := boot(t, opt)
	defer closeNode(t, n)
	_, err := Boot(context.Background(), opt)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("%v", err)
	}
}
