package lua

import (
	"fmt"
	"slices"
	"strconv"
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

// maxPieces is how many pieces one event may make.
const maxPieces = 10_000

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
	if v.Len() > maxPieces {
		return nil, x.bad(fn, "%d pieces at once; at most %d are taken", v.Len(), maxPieces)
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
			p.Replay, err = x.replay(f)
		case "server_blocks":
			p.ServerBlocks, err = names(name, f)
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

// replay gives each item as JSON; raw values keep their bytes.
func (x *exchange) replay(v luavm.Value) ([][]byte, error) {
	if v.Kind() != luavm.Table {
		return nil, fmt.Errorf("replay must be a list")
	}
	if v.Len() == 0 {
		if !x.vm.IsArray(v) && hasFields(v) {
			return nil, fmt.Errorf("replay must be a list of items")
		}
		return nil, nil
	}
	out := make([][]byte, 0, v.Len())
	for i := 1; i <= v.Len(); i++ {
		b, err := x.vm.Encode(v.At(i))
		if err != nil {
			return nil, fmt.Errorf("replay[%d]: %w", i, err)
		}
		if b[0] != '{' {
			return nil, fmt.Errorf("replay[%d] must be an object", i)
		}
		out = append(out, b)
	}
	return out, nil
}

func hasFields(v luavm.Value) (has bool) {
	v.Each(func(string, luavm.Value) bool { has = true; return false })
	return has
}

func names(field string, v luavm.Value) ([]string, error) {
	if v.Kind() != luavm.Table {
		return nil, fmt.Errorf("%s must be a list of texts", field)
	}
	out := make([]string, 0, v.Len())
	for i := 1; i <= v.Len(); i++ {
		s, err := text(fmt.Sprintf("%s[%d]", field, i), v.At(i))
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func usage(v luavm.Value) (*messages.Usage, error) {
	if v.Kind() != luavm.Table {
		return nil, fmt.Errorf("usage must be a table")
	}
	u := &messages.Usage{}
	figures := providers.Figures(u)
	var err error
	v.Each(func(name string, f luavm.Value) bool {
		i := slices.IndexFunc(figures, func(f providers.Figure) bool { return f.Name == name })
		if i < 0 {
			err = fmt.Errorf("usage.%s is unknown", name)
			return false
		}
		// Vendors write odd figures here; a wrong count must not cost the answer.
		if n, ok := f.Int(); ok && n >= 0 {
			*figures[i].Value = n
			u.Reported |= figures[i].Bit
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
		p.Whole = p.Whole || p.Args != "" && t.Get("whole").True()
		out = append(out, p)
	}
	return out, nil
}

var faultFields = []string{"kind", "status", "code", "message", "retry_after", "again"}

var agains = map[string]providers.Again{
	"":               providers.AgainNever,
	"without_replay": providers.AgainWithoutReplay,
	"whole":          providers.AgainWhole,
}

func fault(v luavm.Value) (*providers.Fault, error) {
	if v.Kind() != luavm.Table {
		return nil, fmt.Errorf("a fault must be a table")
	}
	f := &providers.Fault{Message: strings.TrimSpace(v.Get("message").Text())}
	if c := v.Get("code"); c.Kind() == luavm.Number {
		n, _ := c.Float()
		f.Code, f.Numeric = strconv.FormatFloat(n, 'f', -1, 64), true
	} else {
		f.Code = c.Text()
	}
	if n, ok := v.Get("status").Int(); ok {
		f.Status = int(n)
	}
	f.RetryAfter, _ = v.Get("retry_after").Float()
	again, ok := agains[v.Get("again").Text()]
	if !ok {
		return nil, fmt.Errorf("again %q is unknown", v.Get("again").Text())
	}
	f.Again = again
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
