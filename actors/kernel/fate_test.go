package kernel

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"homeagent/actors/kit"
)

// bad is a machine that fails at once, whenever it starts.
type bad struct{}

func (bad) Step(time.Time, kit.Event) []kit.Effect { panic("it never works") }

// A core actor that fails again and again ends the node with its name; a part of the node does not.
func TestLostCoreEndsTheNode(t *testing.T) {
	n := boot(t, options(t))
	defer closeNode(t, n)
	n.layers = append(n.layers, []Row{
		{Kind: "bad", Paths: []string{"part"}},
		{Kind: "bad", Paths: []string{"core"}, Restart: kit.Restart{Escalate: true}},
	})
	for _, r := range n.layers[len(n.layers)-1] {
		row := r.Restart
		row.Intensity, row.Backoff, row.StopTimeout = 2, time.Millisecond, time.Second
		if _, err := n.w.rt.SpawnTop(r.Paths[0], kit.Props{
			Kind: r.Kind, New: func() kit.Machine { return bad{} }, Restart: row,
		}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	select {
	case err := <-n.Lost():
		var lost *LostError
		if !errors.As(err, &lost) || lost.Path != "core" || !strings.Contains(err.Error(), "it never works") {
			t.Errorf("%v", err)
		}
	case <-ctx.Done():
		t.Fatal("nobody was lost")
	}
	for n.w.rt.Counters().GivenUp < 2 && ctx.Err() == nil {
		runtime.Gosched()
	}
	select {
	case err := <-n.Lost():
		t.Errorf("a second loss: %v", err)
	default:
	}
}

func TestRuntimeFiguresAreShown(t *testing.T) {
	n := boot(t, options(t))
	defer closeNode(t, n)
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+n.HTTP()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+n.w.door.Token())
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s %v", res.Status, err)
	}
	for _, name := range []string{"failures", "given_up", "dead_letters", "slow_messages", "sweeps"} {
		if !strings.Contains(string(text), "homeagent_runtime_"+name+"_total ") {
			t.Errorf("no %s", name)
		}
	}
}
