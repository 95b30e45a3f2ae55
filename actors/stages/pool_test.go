package stages

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	onInput      = messages.Stage_STAGE_ON_INPUT
	preAction    = messages.Stage_STAGE_PRE_ACTION
	postAction   = messages.Stage_STAGE_POST_ACTION
	before       = messages.Stage_STAGE_BEFORE_TOOLCALL
	after        = messages.Stage_STAGE_AFTER_TOOLCALL
	beforeOutput = messages.Stage_STAGE_BEFORE_OUTPUT
	afterOutput  = messages.Stage_STAGE_AFTER_OUTPUT
)

func whole() *messages.StageContext {
	return &messages.StageContext{
		TaskId: "T1", Agent: "main", Input: &messages.Input{Id: "T1"}, InputText: "in", ModelText: "model", Reasoning: "why",
		Messages:  []*messages.ChatMessage{{Role: messages.Role_ROLE_USER, Parts: []*messages.Part{{Content: &messages.Part_Text{Text: "in"}}}}},
		Calls:     []*messages.ToolInvocation{{CallId: "c0", Name: "a", ArgumentsJson: []byte(`{}`)}, {CallId: "c1", Name: "b"}},
		Results:   []*messages.ToolResult{{CallId: "c0", Name: "a", Content: "secret"}},
		FinalText: "out", Round: 1, Usage: &messages.Usage{Input: 1}, Extra: map[string]string{"other": "note"}, Outcome: "answered",
	}
}

func modifier(name string, f func(c *messages.StageContext)) Handler {
	return Handler{Name: name, Modifies: true, Run: func(_ context.Context, c *messages.StageContext) error { f(c); return nil }}
}

func observer(name string, f func(c *messages.StageContext)) Handler {
	h := modifier(name, f)
	h.Modifies = false
	return h
}

// The permission table: each writable thing, and the stages that let it through.
func TestPermissions(t *testing.T) {
	writes := []struct {
		name  string
		in    []messages.Stage
		write func(c *messages.StageContext)
	}{
		{"input_text", []messages.Stage{onInput}, func(c *messages.StageContext) { c.InputText = "x" }},
		{"messages", []messages.Stage{preAction}, func(c *messages.StageContext) { c.Messages = nil }},
		{"message inside", []messages.Stage{preAction}, func(c *messages.StageContext) { c.Messages[0].Parts = nil }},
		{"model_text", []messages.Stage{postAction}, func(c *messages.StageContext) { c.ModelText = "x" }},
		{"call arguments", []messages.Stage{postAction, before}, func(c *messages.StageContext) { c.Calls[0].ArgumentsJson = []byte(`{"x":1}`) }},
		{"call denied", []messages.Stage{postAction, before}, func(c *messages.StageContext) { c.Calls[0].Denied = "no" }},
		{"call name", []messages.Stage{postAction}, func(c *messages.StageContext) { c.Calls[0].Name = "rm" }},
		{"call dropped", []messages.Stage{postAction}, func(c *messages.StageContext) { c.Calls = c.Calls[:1] }},
		{"call added", []messages.Stage{postAction}, func(c *messages.StageContext) {
			c.Calls = append(c.Calls, &messages.ToolInvocation{CallId: "c9", Name: "x"})
		}},
		{"result content", []messages.Stage{after}, func(c *messages.StageContext) { c.Results[0].Content = "***" }},
		{"result failed", []messages.Stage{after}, func(c *messages.StageContext) { c.Results[0].Error = &messages.ToolError{Reason: "denied"} }},
		{"result name", nil, func(c *messages.StageContext) { c.Results[0].Name = "x" }},
		{"result dropped", nil, func(c *messages.StageContext) { c.Results = nil }},
		{"final_text", []messages.Stage{beforeOutput}, func(c *messages.StageContext) { c.FinalText = "x" }},
		{"response", []messages.Stage{onInput, preAction, postAction, before, after, beforeOutput}, func(c *messages.StageContext) { c.Response = "x" }},
		{"own note", []messages.Stage{onInput, preAction, postAction, before, after, beforeOutput}, func(c *messages.StageContext) { c.Extra["h"] = "x" }},
		{"another's note", nil, func(c *messages.StageContext) { c.Extra["other"] = "x" }},
		{"task_id", nil, func(c *messages.StageContext) { c.TaskId = "T2" }},
		{"agent", nil, func(c *messages.StageContext) { c.Agent = "x" }},
		{"input", nil, func(c *messages.StageContext) { c.Input.Channel = "x" }},
		{"reasoning", nil, func(c *messages.StageContext) { c.Reasoning = "x" }},
		{"round", nil, func(c *messages.StageContext) { c.Round = 9 }},
		{"usage", nil, func(c *messages.StageContext) { c.Usage.Input = 9 }},
		{"outcome", nil, func(c *messages.StageContext) { c.Outcome = "x" }},
	}
	for _, s := range All() {
		for _, w := range writes {
			p := newPool(s, []Handler{modifier("h", w.write)})
			given := whole()
			got, faults := p.run(t.Context(), given)
			want := whole()
			allowed := slices.Contains(w.in, s)
			if allowed {
				w.write(want)
			}
			if !proto.Equal(got, want) {
				t.Errorf("%s, %s: got %v", Name(s), w.name, got)
			}
			if (len(faults) == 0) != allowed || (!allowed && faults[0].GetReason() != ReasonForbidden) {
				t.Errorf("%s, %s: faults %v", Name(s), w.name, faults)
			}
			if !proto.Equal(given, whole()) {
				t.Fatalf("%s, %s: the context that was given changed", Name(s), w.name)
			}
		}
	}
}

// What a handler may write takes effect although it also wrote what it may not.
func TestForbiddenBesidePermitted(t *testing.T) {
	p := newPool(before, []Handler{modifier("h", func(c *messages.StageContext) {
		c.Calls[0].Denied = "no"
		c.Calls[1].Name = "rm"
		c.ModelText = "x"
	})})
	got, faults := p.run(t.Context(), whole())
	if got.GetCalls()[0].GetDenied() != "no" || got.GetCalls()[1].GetName() != "b" || got.GetModelText() != "model" {
		t.Errorf("got %v", got)
	}
	if len(faults) != 1 || !strings.Contains(faults[0].GetDetail(), "model_text, calls") {
		t.Errorf("faults %v", faults)
	}
}

func TestModifiersRunInOrder(t *testing.T) {
	add := func(s string) Handler {
		return modifier(s, func(c *messages.StageContext) { c.FinalText += s })
	}
	p := newPool(beforeOutput, []Handler{add("1"), observer("o", func(*messages.StageContext) {}), add("2"), add("3")})
	got, faults := p.run(t.Context(), whole())
	if got.GetFinalText() != "out123" || len(faults) != 0 {
		t.Errorf("got %q, faults %v", got.GetFinalText(), faults)
	}
}

func TestDenialStays(t *testing.T) {
	p := newPool(before, []Handler{
		modifier("deny", func(c *messages.StageContext) { c.Calls[0].Denied = "no" }),
		modifier("allow", func(c *messages.StageContext) { c.Calls[0].Denied = "" }),
	})
	got, faults := p.run(t.Context(), whole())
	if got.GetCalls()[0].GetDenied() != "no" || len(faults) != 1 {
		t.Errorf("got %v, faults %v", got.GetCalls()[0], faults)
	}
}

func TestResponseEndsStage(t *testing.T) {
	later := false
	p := newPool(onInput, []Handler{
		modifier("a", func(c *messages.StageContext) { c.Response = "done" }),
		modifier("b", func(*messages.StageContext) { later = true }),
	})
	got, _ := p.run(t.Context(), whole())
	if got.GetResponse() != "done" || later {
		t.Errorf("response %q, later handler ran: %v", got.GetResponse(), later)
	}
}

// Observers run beside each other and beside the modifiers: each waits here until all have begun.
func TestObserversRunTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun sync.WaitGroup
		begun.Add(3)
		meet := func(c *messages.StageContext) {
			begun.Done()
			begun.Wait()
			c.InputText = "scribble"
		}
		p := newPool(onInput, []Handler{observer("a", meet), observer("b", meet), modifier("m", meet)})
		got, faults := p.run(t.Context(), whole())
		if got.GetInputText() != "scribble" || len(faults) != 2 {
			t.Errorf("got %q, faults %v", got.GetInputText(), faults)
		}
		for _, f := range faults {
			if f.GetReason() != ReasonForbidden || f.GetHandler() == "m" {
				t.Errorf("fault %v", f)
			}
		}
	})
}

func TestFaultsLeaveOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		p := newPool(beforeOutput, []Handler{
			modifier("panics", func(c *messages.StageContext) { c.FinalText = "lost"; panic("boom") }),
			{Name: "fails", Modifies: true, Run: func(_ context.Context, c *messages.StageContext) error {
				c.FinalText = "lost"
				return errors.New("no luck")
			}},
			{Name: "hangs", Modifies: true, Deadline: time.Second, Run: func(_ context.Context, c *messages.StageContext) error {
				<-gate
				c.FinalText = "too late"
				return nil
			}},
			{Name: "slow", Modifies: true, Run: func(ctx context.Context, _ *messages.StageContext) error {
				<-ctx.Done()
				return ctx.Err()
			}},
			modifier("works", func(c *messages.StageContext) { c.FinalText += "!" }),
		})
		begin := time.Now()
		got, faults := p.run(t.Context(), whole())
		if took := time.Since(begin); took != 6*time.Second {
			t.Errorf("took %v, want the two deadlines", took)
		}
		close(gate)
		p.wait()
		if got.GetFinalText() != "out!" {
			t.Errorf("final text %q", got.GetFinalText())
		}
		var reasons []string
		for _, f := range faults {
			reasons = append(reasons, f.GetHandler()+":"+f.GetReason())
		}
		if len(reasons) != 4 || reasons[0] != "panics:panic" || reasons[1] != "fails:error" || reasons[2] != "hangs:timeout" {
			t.Errorf("faults %v", reasons)
		}
	})
}

// A handler that never returns costs a bounded number of goroutines, and works again when it does return.
func TestStuckHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		var calls atomic.Int32
		p := newPool(onInput, []Handler{{Name: "h", Modifies: true, Deadline: time.Second, Run: func(context.Context, *messages.StageContext) error {
			calls.Add(1)
			<-gate
			return nil
		}}})
		for range mostStuck + 3 {
			if _, faults := p.run(t.Context(), whole()); len(faults) != 1 || faults[0].GetReason() != ReasonTimeout {
				t.Fatalf("faults %v", faults)
			}
		}
		if n := calls.Load(); n != mostStuck {
			t.Errorf("called %d times, want %d", n, mostStuck)
		}
		close(gate)
		p.wait()
		if _, faults := p.run(t.Context(), whole()); len(faults) != 0 {
			t.Errorf("faults %v after it returned", faults)
		}
	})
}

func TestGuardFailsClosed(t *testing.T) {
	p := newPool(before, []Handler{{Name: "g", Modifies: true, Guard: true, Run: func(context.Context, *messages.StageContext) error {
		return errors.New("no policy")
	}}})
	got, faults := p.run(t.Context(), whole())
	if len(faults) != 1 || got.GetCalls()[0].GetDenied() == "" || got.GetCalls()[1].GetDenied() == "" {
		t.Errorf("got %v, faults %v", got.GetCalls(), faults)
	}
}

func TestDenyTools(t *testing.T) {
	names := []string{"b"}
	p := newPool(before, []Handler{DenyTools(func() []string { return names })})
	got, faults := p.run(t.Context(), whole())
	if len(faults) != 0 || got.GetCalls()[0].GetDenied() != "" || !strings.Contains(got.GetCalls()[1].GetDenied(), "core.tools.denied") {
		t.Errorf("got %v, faults %v", got.GetCalls(), faults)
	}
	names = nil
	if got, _ = p.run(t.Context(), whole()); got.GetCalls()[1].GetDenied() != "" {
		t.Error("a lifted denial holds on")
	}
}

func TestCheck(t *testing.T) {
	ok := modifier("a", func(*messages.StageContext) {})
	guard := ok
	guard.Guard = true
	for _, c := range []struct {
		stage messages.Stage
		hs    []Handler
		good  bool
	}{
		{onInput, []Handler{ok}, true},
		{before, []Handler{guard}, true},
		{onInput, []Handler{ok, ok}, false},
		{onInput, []Handler{guard}, false},
		{onInput, []Handler{{Name: "x"}}, false},
		{onInput, []Handler{{Run: ok.Run}}, false},
		{afterOutput, []Handler{ok}, false},
	} {
		if err := Check(c.stage, c.hs); (err == nil) != c.good {
			t.Errorf("%s %v: %v", Name(c.stage), c.hs, err)
		}
	}
}

// Each handler counts in its own field; with a shared context such updates are lost.
func TestNoLostUpdates(t *testing.T) {
	add := func(name string) Handler {
		return modifier(name, func(c *messages.StageContext) { c.ModelText += "."; c.Extra[name] = "seen" })
	}
	p := newPool(postAction, []Handler{add("a"), add("b"), add("c"), add("d")})
	var all sync.WaitGroup
	var lost atomic.Int32
	for range 50 {
		all.Go(func() {
			got, _ := p.run(t.Context(), whole())
			if got.GetModelText() != "model...." || len(got.GetExtra()) != 5 {
				lost.Add(1)
			}
		})
	}
	all.Wait()
	if lost.Load() != 0 {
		t.Errorf("%d of 50 runs lost updates", lost.Load())
	}
}
