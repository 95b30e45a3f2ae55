package lua

import (
	"fmt"
	"slices"
	"strings"

	"homeagent/internal/luavm"
	"homeagent/providers"
	"homeagent/providers/framing"
)

// Contract is the version that adapters must name.
const Contract = 1

const (
	fnHeaders  = "headers"
	fnEndpoint = "endpoint"
	fnRequest  = "transform_request"
	fnResponse = "transform_response"
	fnChunk    = "transform_stream_chunk"
	fnClassify = "classify_error"
	fnRespond  = "respond"

	fnEmbedEndpoint = "embed_endpoint"
	fnEmbedRequest  = "embed_request"
	fnEmbedResponse = "embed_response"
)

var fields = []string{
	"contract", "name", "version", "extends", "base_url", fnEndpoint, "framing", "capabilities", "auth", "options",
	fnHeaders, fnRequest, fnResponse, fnChunk, fnClassify, fnRespond,
	"tool_ids", fnEmbedEndpoint, fnEmbedRequest, fnEmbedResponse,
}

var capabilities = []string{"stream", "tools", "vision", "audio", "thinking", "structured"}

// inspect checks what a file returned against the contract.
func inspect(t luavm.Value, key, file string) (*adapter, error) {
	bad := func(format string, args ...any) (*adapter, error) {
		return nil, fmt.Errorf("%s: %s", file, fmt.Sprintf(format, args...))
	}
	if t.Kind() != luavm.Table {
		return bad("the file must return a table")
	}
	var unknown []string
	t.Each(func(name string, _ luavm.Value) bool {
		if !slices.Contains(fields, name) {
			unknown = append(unknown, name)
		}
		return true
	})
	if len(unknown) > 0 {
		return bad("unknown field %q; the contract knows %s", unknown[0], strings.Join(fields, ", "))
	}
	if v, ok := t.Get("contract").Int(); !ok || v != Contract {
		return bad("contract must be %d", Contract)
	}
	if t.Get("name").Text() != key {
		return bad("name must be %q, as the file is called", key)
	}
	if t.Get("version").Text() == "" {
		return bad("version must be a text")
	}
	info := providers.Info{
		Name: key, Version: t.Get("version").Text(), BaseURL: t.Get("base_url").Text(), File: file, Extends: t.Get("extends").Text(),
	}
	if err := capable(t.Get("capabilities"), &info); err != nil {
		return bad("%s", err)
	}
	if err := proof(t.Get("auth"), &info); err != nil {
		return bad("%s", err)
	}
	if k := t.Get("options").Kind(); k != luavm.Nil && k != luavm.Table {
		return bad("options must be a table")
	}
	for _, fn := range []string{fnHeaders, fnRequest, fnResponse, fnChunk, fnClassify, fnRespond, fnEmbedRequest, fnEmbedResponse} {
		if k := t.Get(fn).Kind(); k != luavm.Nil && k != luavm.Func {
			return bad("%s must be a function", fn)
		}
	}
	has := func(fn string) bool { return t.Get(fn).Kind() == luavm.Func }
	form, err := providers.ParseIDForm(t.Get("tool_ids").Text())
	if err != nil {
		return bad("tool_ids: %s", err)
	}
	info.ToolIDs = form
	if info.Embeds = has(fnEmbedRequest); info.Embeds && (!has(fnEmbedResponse) || !placed(t.Get(fnEmbedEndpoint))) {
		return bad("%s needs %s and %s", fnEmbedRequest, fnEmbedResponse, fnEmbedEndpoint)
	}
	info.Chat = !info.Embeds || has(fnRequest) || has(fnRespond)
	if !info.Chat {
		info.Framing, info.Streams = framing.JSON, false
		return &adapter{info: info}, nil
	}
	if info.Local = has(fnRespond); info.Local {
		if has(fnRequest) || has(fnResponse) || has(fnChunk) {
			return bad("an adapter has either respond or the transforms")
		}
		return &adapter{info: info}, nil
	}
	for _, fn := range []string{fnRequest, fnResponse} {
		if !has(fn) {
			return bad("%s is missing", fn)
		}
	}
	if !placed(t.Get(fnEndpoint)) {
		return bad("endpoint must be a text or a function")
	}
	kind, err := framing.Parse(t.Get("framing").Text())
	if err != nil {
		return bad("%s", err)
	}
	info.Framing = kind
	if kind == framing.JSON {
		info.Streams = false
	}
	if info.Streams && !has(fnChunk) {
		return bad("%s is missing, but capabilities.stream is set", fnChunk)
	}
	return &adapter{info: info}, nil
}

// placed tells that an endpoint is a text or a function.
func placed(v luavm.Value) bool { return v.Kind() == luavm.String || v.Kind() == luavm.Func }

func capable(t luavm.Value, info *providers.Info) error {
	if t.Kind() != luavm.Table {
		return fmt.Errorf("capabilities must be a table")
	}
	var err error
	t.Each(func(name string, v luavm.Value) bool {
		if !slices.Contains(capabilities, name) {
			err = fmt.Errorf("unknown capability %q; there are %s", name, strings.Join(capabilities, ", "))
		} else if v.Kind() != luavm.Bool {
			err = fmt.Errorf("capabilities.%s must be true or false", name)
		}
		return err == nil
	})
	info.Streams, info.Tools = t.Get("stream").True(), t.Get("tools").True()
	info.Vision, info.Audio = t.Get("vision").True(), t.Get("audio").True()
	info.Thinking, info.Structured = t.Get("thinking").True(), t.Get("structured").True()
	return err
}

// proof reads the field auth: nothing, or { kind = "aws", service }.
func proof(t luavm.Value, info *providers.Info) error {
	info.Auth.Kind = providers.AuthKey
	switch {
	case t.Missing():
		return nil
	case t.Kind() != luavm.Table || t.Get("kind").Text() != providers.AuthAWS || t.Get("service").Text() == "":
		return fmt.Errorf("auth must be { kind = %q, service = \"…\" }, or be left out where headers place the key", providers.AuthAWS)
	}
	info.Auth = providers.Auth{Kind: providers.AuthAWS, Service: t.Get("service").Text()}
	return nil
}

// inherit makes what a profile exports: its own fields over those of the
// adapter it extends, capabilities and options field by field.
func inherit(s *luavm.State) error {
	own := s.Exports()
	name := own.Get("extends")
	if name.Missing() {
		return nil
	}
	if name.Kind() != luavm.String {
		return fmt.Errorf("extends must be the name of an adapter")
	}
	base, err := s.Use(name.Text())
	if err != nil {
		return err
	}
	if base.Kind() != luavm.Table || base.Get("contract").Missing() {
		return fmt.Errorf("extends: %s is no adapter", name.Text())
	}
	if !base.Get("extends").Missing() {
		return fmt.Errorf("extends: %s is a profile itself; extend %s", name.Text(), base.Get("extends").Text())
	}
	out := s.Object()
	overlay(out, base)
	overlay(out, own)
	for _, field := range []string{"capabilities", "options"} {
		both := s.Object()
		overlay(both, base.Get(field))
		overlay(both, own.Get(field))
		out.Set(field, both)
	}
	s.SetExports(out)
	return nil
}

// overlay sets the fields of v in dst; null removes one.
func overlay(dst, v luavm.Value) {
	v.Each(func(name string, f luavm.Value) bool {
		if f.Kind() == luavm.Null {
			f = luavm.Value{}
		}
		dst.Set(name, f)
		return true
	})
}
