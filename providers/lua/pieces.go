package lua

import (
	"fmt"
	"slices"
	"strings"

	"homeagent/internal/luavm"
	"homeagent/messages"
	"homeagent/providers"
)

var finishes = map[string]messages.Finish{
	"stop":           messages.Finish_FINISH_STOP,
	"length":         messages.Finish_FINISH_LENGTH,
	"tool_calls":     messages.Finish_FINISH_TOOL_CALLS,
	"content_filter": messages.Finish_FINISH_CONTENT_FILTER,
	"pause":          messages.Finish_FINISH_PAUSE,
}

// pieces reads what a script returned: nothing, one piece or a list.
func (x *exchange) pieces(fn string, v luavm.Value) ([]providers.Piece, error) {
	switch {
	case v.Missing():
		return nil, nil
	case v.Kind() != luavm.Table:
		return nil, x.bad(fn, "must return a table or nil")
	case v.Len() == 0:
		p, err := x.piece(v)
		if err != nil {
			return nil, x.bad(fn, "%s", err)
		}
		return []providers.Piece{p}, nil
	}
	out := make([]providers.Piece, 0, v.Len())
	for i := 1; i <= v.Len(); i++ {
		p, err := x.piece(v.At(i))
		if err != nil {
			return nil, x.bad(fn, "piece %d: %s", i, err)
		}
		out = append(out, p)
	}
	return out, nil
}

func (x *exchange) piece(v luavm.Value) (p providers.Piece, err error) {
	if v.Kind() != luavm.Table {
		return p, fmt.Errorf("a piece must be a table")
	}
	v.Each(func(name string, f luavm.Value) bool {
		if f.Missing() {
			return true
		}
		switch name {
		case "text":
			p.Text, err = text(name, f)
		case "reasoning":
			p.Reasoning, err = text(name, f)
		case "refusal":
			p.Refusal, err = text(name, f)
		case "model":
			p.Model, err = text(name, f)
		case "replay":
			var s string
			s, err = text(name, f)
			p.Replay = []byte(s)
		case "done":
			p.Done = f.True()
		case "finish":
			var ok bool
			if p.Finish, ok = finishes[f.Text()]; !ok {
				err = fmt.Errorf("finish %q is unknown", f.Text())
			}
		case "usage":
			p.Usage, err = usage(f)
		case "tools":
			p.Tools, err = x.tools(f)
		case "error":
			p.Fault, err = fault(f)
		default:
			err = fmt.Errorf("unknown field %q", name)
		}
		return err == nil
	})
	return p, err
}

func text(name string, v luavm.Value) (string, error) {
	if v.Kind() != luavm.String {
		return "", fmt.Errorf("%s must be a text", name)
	}
	return v.Text(), nil
}

func usage(v luavm.Value) (*messages.Usage, error) {
	u := &messages.Usage{}
	to := map[string]*int64{
		"input": &u.Input, "output": &u.Output, "cached": &u.Cached, "reasoning": &u.Reasoning,
		"cache_write": &u.CacheWrite, "prompt_total": &u.PromptTotal, "total": &u.Total,
	}
	var err error
	v.Each(func(name string, f luavm.Value) bool {
		field, ok := to[name]
		if !ok {
			err = fmt.Errorf("usage.%s is unknown", name)
			return false
		}
		// Vendors write odd figures here; a wrong count must not cost the answer.
		if n, ok := f.Int(); ok && n > 0 {
			*field = n
		}
		return true
	})
	return u, err
}

func (x *exchange) tools(v luavm.Value) ([]providers.ToolPiece, error) {
	out := make([]providers.ToolPiece, 0, v.Len())
	for i := 1; i <= v.Len(); i++ {
		t := v.At(i)
		p := providers.ToolPiece{Index: -1, ID: t.Get("id").Text(), Name: t.Get("name").Text()}
		if n, ok := t.Get("index").Int(); ok {
			p.Index = int(n)
		}
		switch a := t.Get("args"); a.Kind() {
		case luavm.Nil, luavm.Null:
		case luavm.String:
			p.Args = a.Text()
		case luavm.Table, luavm.Raw, luavm.Number, luavm.Bool:
			// Not text, so it is all there is; that it may be no object is the
			// assembly's to say.
			b, err := x.vm.Encode(a)
			if err != nil {
				return nil, fmt.Errorf("tools[%d].args: %w", i, err)
			}
			p.Args, p.Whole = string(b), true
		default:
			return nil, fmt.Errorf("tools[%d].args must be a text or a table", i)
		}
		out = append(out, p)
	}
	return out, nil
}

var faultFields = []string{"kind", "status", "code", "message", "retry_after"}

func fault(v luavm.Value) (*providers.Fault, error) {
	if v.Kind() != luavm.Table {
		return nil, fmt.Errorf("a fault must be a table")
	}
	f := &providers.Fault{Message: strings.TrimSpace(v.Get("message").Text())}
	if c := v.Get("code"); c.Kind() == luavm.Number {
		n, _ := c.Float()
		f.Code = fmt.Sprint(n)
	} else {
		f.Code = c.Text()
	}
	if n, ok := v.Get("status").Int(); ok {
		f.Status = int(n)
	}
	f.RetryAfter, _ = v.Get("retry_after").Float()
	if name := v.Get("kind"); !name.Missing() {
		kind, ok := providers.ParseKind(name.Text())
		if !ok {
			return nil, fmt.Errorf("kind %q is unknown", name.Text())
		}
		f.Kind = kind
	}
	var err error
	v.Each(func(name string, _ luavm.Value) bool {
		if !slices.Contains(faultFields, name) {
			err = fmt.Errorf("a fault has no field %q", name)
		}
		return err == nil
	})
	return f, err
}
