package lua

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"homeagent/internal/luavm"
	"homeagent/providers"
)

var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// maxLog is where a logged text is cut.
const maxLog = 4 << 10

// logLine is log(level, text) of scripts.
func (b *book) logLine(_ *luavm.State, args []luavm.Value) ([]luavm.Value, error) {
	if len(args) != 2 || args[0].Kind() != luavm.String || args[1].Kind() != luavm.String {
		return nil, fmt.Errorf("log takes a level and a text")
	}
	level, ok := levels[args[0].Text()]
	if !ok {
		return nil, fmt.Errorf("log: the level %q is unknown; legal are debug, info, warn, error", args[0].Text())
	}
	text := args[1].Text()
	if len(text) > maxLog {
		text = text[:maxLog]
	}
	b.log.Log(context.Background(), level, "adapter says", "adapter", b.key, "text", strings.ToValidUTF8(text, "\uFFFD"))
	return nil, nil
}

// escape is escape(text) of scripts: the text as one step of a URL's path.
func escape(_ *luavm.State, args []luavm.Value) ([]luavm.Value, error) {
	if len(args) != 1 || args[0].Kind() != luavm.String {
		return nil, fmt.Errorf("escape takes a text")
	}
	// A colon is legal in a path, but signatures want it escaped.
	return []luavm.Value{luavm.Str(strings.ReplaceAll(url.PathEscape(args[0].Text()), ":", "%3A"))}, nil
}

func httpGet(s *luavm.State, args []luavm.Value) ([]luavm.Value, error) {
	if len(args) < 1 || args[0].Kind() != luavm.String {
		return nil, fmt.Errorf("http_get takes an address and headers, which may be left out")
	}
	var headers luavm.Value
	if len(args) > 1 {
		headers = args[1]
	}
	return fetch(s, args[0].Text(), headers, nil)
}

func httpPost(s *luavm.State, args []luavm.Value) ([]luavm.Value, error) {
	if len(args) < 2 || args[0].Kind() != luavm.String {
		return nil, fmt.Errorf("http_post takes an address, a body, and headers, which may be left out")
	}
	var headers luavm.Value
	if len(args) > 2 {
		headers = args[2]
	}
	body := []byte(args[1].Text())
	if args[1].Kind() != luavm.String {
		var err error
		if body, err = s.Encode(args[1]); err != nil {
			return nil, err
		}
	}
	if body == nil {
		body = []byte{}
	}
	return fetch(s, args[0].Text(), headers, body)
}

// fetch asks and gives { status, headers, body, json }, or nil and a text.
func fetch(s *luavm.State, target string, headers luavm.Value, body []byte) ([]luavm.Value, error) {
	x, ok := s.Owner().(*exchange)
	if !ok || x.fetch == nil {
		return nil, fmt.Errorf("http works only inside of a call to a source")
	}
	set := make(map[string]string)
	headers.Each(func(name string, v luavm.Value) bool {
		set[name] = v.Text()
		return true
	})
	start := time.Now()
	got, err := x.fetch(s.Context(), target, set, body)
	s.Waited(time.Since(start))
	if err != nil {
		return []luavm.Value{{}, luavm.Str(err.Error())}, nil
	}
	out := s.Object().Set("status", luavm.Num(float64(got.Status))).Set("headers", headerTable(s, got.Headers)).Set("body", luavm.Str(string(got.Body)))
	if json.Valid(got.Body) {
		if v, err := s.Decode(got.Body); err == nil {
			out.Set("json", v)
		}
	}
	return []luavm.Value{out}, nil
}

func headerTable(s *luavm.State, headers map[string]string) luavm.Value {
	h := s.Object()
	names := make([]string, 0, len(headers))
	for name := range headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		h.Set(name, luavm.Str(headers[name]))
	}
	return h
}

var _ providers.Adapters = (*Engine)(nil)
