package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// recorder writes the transcript of a run; nil writes nothing.
type recorder struct {
	out io.Writer
	now func() time.Time
}

func (r *recorder) line(format string, args ...any) {
	at := time.Duration(0)
	if r.now != nil {
		at = r.now().Sub(start)
	}
	fmt.Fprintf(r.out, "%12s "+format+"\n", append([]any{at.Round(time.Microsecond)}, args...)...)
}

func (r *recorder) note(format string, args ...any) {
	if r != nil {
		r.line("# "+format, args...)
	}
}

func (r *recorder) ask(path, corr string, m proto.Message) {
	if r != nil {
		r.line("people -> %s [%s] %s", path, corr, render(m))
	}
}

func (r *recorder) answer(corr string, m proto.Message) {
	if r != nil {
		r.line("people <- [%s] %s", corr, render(m))
	}
}

// step writes what one actor was given and what it sent.
func (r *recorder) step(path string, e kit.Event, effects []kit.Effect) {
	if r == nil {
		return
	}
	from := ""
	if e.From != nil {
		from = " from " + e.From.GetPath()
	}
	r.line("%s <- %s%s", path, renderAny(e.Msg), from)
	for _, f := range effects {
		switch f := f.(type) {
		case kit.Send:
			r.line("      -> %s %s", f.To.GetPath(), render(f.Msg))
		case kit.Reply:
			r.line("      => %s %s", f.To.GetPath(), render(f.Msg))
		case kit.Publish:
			r.line("      !! %s", render(f.Event))
		case kit.State, kit.Log, kit.CancelAfter:
		default:
			r.line("      .. %s", renderAny(f))
		}
	}
}

func renderAny(v any) string {
	switch v := v.(type) {
	case proto.Message:
		return render(v)
	case kit.After:
		return fmt.Sprintf("After %s %s", v.Key, v.D)
	case kit.Spawn:
		return fmt.Sprintf("Spawn %s %s", v.Kind, v.Name)
	case kit.Stop:
		return "Stop " + v.Who.GetPath()
	case kit.Ended:
		return fmt.Sprintf("Ended %s %q", v.Who.GetPath(), v.Failure)
	case kit.Fault:
		return fmt.Sprintf("Fault of %s: %s", renderAny(v.Effect), v.Err.GetCode())
	case kit.Send:
		return fmt.Sprintf("Send %s to %s", render(v.Msg), v.To.GetPath())
	}
	return cut(pointer.ReplaceAllString(fmt.Sprintf("%T%+v", v, v), "&"))
}

// pointer is what differs from run to run in a private value.
var pointer = regexp.MustCompile(`0x[0-9a-f]{6,}`)

// render is a message as its name and compact JSON, cut.
func render(m proto.Message) string {
	if m == nil {
		return "nothing"
	}
	if d, ok := m.(*messages.RunStage); ok {
		return "RunStage " + d.GetStage().String()
	}
	if d, ok := m.(*messages.StageDone); ok {
		return "StageDone " + d.GetStage().String()
	}
	name := string(m.ProtoReflect().Descriptor().Name())
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return name
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return name
	}
	return cut(name + b.String())
}

func cut(s string) string {
	const most = 260
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
