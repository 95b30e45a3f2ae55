package turn

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// sender is a tool that sends to the channel that its argument "to" names, or always to one.
func sender(name, argument, always string) *messages.ToolDef {
	d := tool(name, once, finishes, true)
	d.ChannelArgument, d.SendsTo = argument, always
	return d
}

// A batch runs at the same time only when each call may and no two send to one channel; else all of it runs in order.
func TestBatches(t *testing.T) {
	tools := []*messages.ToolDef{
		tool("read", pure, finishes, true), tool("write", once, finishes, false),
		sender("send", "to", ""), sender("mail", "", "mail"), sender("post", "to", ""),
	}
	type one struct{ name, args string }
	for _, c := range []struct {
		name     string
		calls    []one
		parallel bool
	}{
		{"one", []one{{"read", "{}"}}, false},
		{"all safe", []one{{"read", "{}"}, {"read", "{}"}, {"mail", "{}"}}, true},
		{"one is not", []one{{"read", "{}"}, {"write", "{}"}, {"read", "{}"}}, false},
		{"unknown", []one{{"read", "{}"}, {"nothing", "{}"}}, false},
		{"two channels", []one{{"send", `{"to":"cli"}`}, {"send", `{"to":"web"}`}, {"mail", "{}"}}, true},
		{"one channel", []one{{"send", `{"to":"cli"}`}, {"read", "{}"}, {"send", `{"to":"cli"}`}}, false},
		{"one channel of two tools", []one{{"send", `{"to":"mail"}`}, {"mail", "{}"}}, false},
		{"same fixed channel", []one{{"mail", "{}"}, {"mail", "{}"}}, false},
		{"written otherwise", []one{{"send", `{"to":"c\u006ci"}`}, {"post", ` {"x":1,"to":"cli"}`}}, false},
		{"not said", []one{{"send", `{}`}, {"send", `{"to":7}`}}, false},
		{"one not said", []one{{"send", `{}`}, {"send", `{"to":"cli"}`}}, false},
		{"no JSON", []one{{"send", `{"to"`}, {"mail", `{}`}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.tools = tools
			w.model = func(r *messages.CompletionRequest) *messages.CompletionResult {
				if len(toolTexts(r)) > 0 {
					return says("Done.")
				}
				var names []string
				for _, k := range c.calls {
					names = append(names, k.name)
				}
				res := callsFor("", names...)
				for i, k := range c.calls {
					res.Calls[i].ArgumentsJson = []byte(k.args)
				}
				return res
			}
			w.hold = isCall
			w.begin("", nil)
			w.all()
			if got := len(w.held) == len(c.calls) && len(c.calls) > 1; got != c.parallel {
				t.Fatalf("%d of %d calls run at the same time, want parallel %v", len(w.held), len(c.calls), c.parallel)
			}
			for len(w.held) > 0 { // the last one ends first
				w.queue = append(w.queue, w.held[len(w.held)-1])
				w.held = w.held[:len(w.held)-1]
				w.all()
			}
			w.wantEnd(answered, "ok", "Done.")
			got := toolTexts(w.requests[1])
			if len(got) != len(c.calls) {
				t.Fatalf("%d results for %d calls", len(got), len(c.calls))
			}
			for i, k := range c.calls {
				if !strings.HasPrefix(got[i], k.name) {
					t.Errorf("result %d is %q, want that of %s", i, got[i], k.name)
				}
			}
		})
	}
}

// A handler that redirects a call to the channel of another one makes the batch serial.
func TestRedirectedSend(t *testing.T) {
	w := newWorld(t)
	w.tools = []*messages.ToolDef{sender("send", "to", "")}
	w.model = func(r *messages.CompletionRequest) *messages.CompletionResult {
		if len(toolTexts(r)) > 0 {
			return says("Done.")
		}
		res := callsFor("", "send", "send")
		res.Calls[0].ArgumentsJson, res.Calls[1].ArgumentsJson = []byte(`{"to":"cli"}`), []byte(`{"to":"web"}`)
		return res
	}
	w.stage = func(m *messages.RunStage) *messages.StageContext {
		if m.GetStage() != messages.Stage_STAGE_BEFORE_TOOLCALL {
			return nil
		}
		c := proto.CloneOf(m.GetContext())
		for _, inv := range c.GetCalls() {
			inv.ArgumentsJson = []byte(`{"to":"cli"}`)
		}
		return c
	}
	w.hold = isCall
	w.begin("", nil)
	w.all()
	if len(w.held) != 1 {
		t.Fatalf("%d sends to one channel at the same time", len(w.held))
	}
	w.release()
	w.wantEnd(answered, "ok", "Done.")
	if len(w.calls) != 2 || len(w.checks) != 2 {
		t.Errorf("%d calls, %d checks", len(w.calls), len(w.checks))
	}
}

// Each result brings its own media, at most a few; a result with an error is a failure, whatever else it holds.
func TestResultMessages(t *testing.T) {
	media := func(n int) (out []*messages.PayloadRef) {
		for i := range n {
			out = append(out, &messages.PayloadRef{Id: fmt.Sprintf("blk_media_%d", i), MediaType: "image/png", Size: 10})
		}
		return out
	}
	inv := &messages.ToolInvocation{CallId: "c", VendorId: "v", Name: "a"}
	for _, c := range []struct {
		name   string
		result *messages.ToolResult
		text   string
		media  int
		failed bool
	}{
		{"text", &messages.ToolResult{Content: "x"}, "x", 0, false},
		{"media", &messages.ToolResult{Content: "x", Media: media(2)}, "x", 2, false},
		{"only media", &messages.ToolResult{Media: media(1)}, "", 1, false},
		{"many media", &messages.ToolResult{Content: "x", Media: media(maxMedia + 3)}, "x\n[3 more media of this result are not shown]", maxMedia, false},
		{"error", &messages.ToolResult{Error: &messages.ToolError{Reason: "failed", Detail: "no"}}, `{"error":{"reason":"failed","detail":"no"}}`, 0, true},
		{"error and content", &messages.ToolResult{Content: "fine", Error: &messages.ToolError{Reason: "failed"}}, `{"error":{"reason":"failed"}}`, 0, true},
		{"error and media", &messages.ToolResult{Media: media(1), Error: &messages.ToolError{Reason: "failed"}}, `{"error":{"reason":"failed"}}`, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			msg := resultMessage(inv, c.result)
			if got := plainText(msg.GetParts()); got != c.text || msg.GetFailed() != c.failed || msg.GetVendorCallId() != "v" {
				t.Errorf("message %v", msg)
			}
			n := 0
			for _, p := range msg.GetParts() {
				if p.GetPayload() != nil {
					n++
				}
			}
			if n != c.media {
				t.Errorf("%d media, want %d", n, c.media)
			}
		})
	}
}

// Media of two calls of one batch stay apart.
func TestMediaPerCall(t *testing.T) {
	w := newWorld(t)
	w.tools = []*messages.ToolDef{tool("a", pure, finishes, true), tool("b", pure, finishes, true)}
	w.model = byRound([]string{"a", "b"}, "Done.")
	w.hold = func(s kit.Send) bool { return isCall(s) }
	w.begin("", nil)
	w.all()
	for i, e := range w.held {
		r := proto.CloneOf(e.Msg.(*messages.ToolResult))
		r.Media = []*messages.PayloadRef{{Id: "blk_media_" + r.GetName()}}
		w.held[i].Msg = r
	}
	w.held[0], w.held[1] = w.held[1], w.held[0]
	w.release()
	w.wantEnd(answered, "ok", "Done.")
	for _, msg := range w.requests[1].GetMessages() {
		if msg.GetRole() != messages.Role_ROLE_TOOL {
			continue
		}
		if got := msg.GetParts()[1].GetPayload().GetId(); got != "blk_media_"+msg.GetToolName() {
			t.Errorf("%s has %s", msg.GetToolName(), got)
		}
	}
}
