package lua

import (
	"context"
	"encoding/json"
	"fmt"

	"homeagent/messages"
	"homeagent/providers"
	"homeagent/providers/framing"
)

// Try runs each function of an adapter once on something small; the error is one
// for which the adapter is at fault.
func (e *Engine) Try(ctx context.Context, name string) error {
	a, err := e.Adapter(name)
	if err != nil {
		return err
	}
	return tried(ctx, a)
}

// tried runs the functions of an adapter that lives in this process.
func tried(ctx context.Context, a providers.Adapter) error {
	here, ok := a.(*adapter)
	if !ok {
		return nil
	}
	return here.try(ctx)
}

// try runs each function of an adapter once on something small, so that what
// would fail in the first call fails here. Failures that an adapter reports of
// the server are no fault of its own.
func (a *adapter) try(ctx context.Context) error {
	src := providers.Source{Name: "check", Adapter: a.info.Name, Model: "model", BaseURL: "https://model.invalid/base", Vision: true, Audio: true}
	req := &providers.Request{CompletionRequest: sample(), Stream: a.info.Streams, Media: map[string][]byte{"blk": {1, 2, 3}}}
	x, err := a.Open(ctx, &src, req, nil)
	if err != nil {
		return err
	}
	defer x.Close()
	if a.info.Embeds {
		if _, err := x.PrepareEmbed(ctx, []string{"a", "b"}, providers.EmbedOptions{Purpose: providers.EmbedQuery, Dimensions: 3}); err != nil {
			return err
		}
		for _, text := range []string{`{}`, `{"error":{"message":"m"}}`, `{"data":[]}`} {
			if _, err := x.Embeddings(ctx, []byte(text)); own(err) != nil {
				return err
			}
		}
	}
	if !a.info.Chat {
		return nil
	}
	p, err := x.Prepare(ctx)
	if err != nil {
		return err
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(p.Body, &body); err != nil {
		return fmt.Errorf("%s: %s: the body is no JSON object: %w", a.info.File, fnRequest, err)
	}
	if a.info.Local {
		_, err = x.Answer(ctx, nil)
		return own(err)
	}
	for _, status := range []int{400, 401, 429, 500} {
		for _, text := range []string{``, `{}`, `{"error":{"message":"m","code":"c"}}`, `<html>`} {
			if _, err := x.Classify(ctx, providers.HTTPError{Status: status, Body: []byte(text)}); own(err) != nil {
				return err
			}
		}
	}
	if a.info.Streams {
		for _, data := range []string{`{}`, `[DONE]`, ``, `{"error":"m"}`} {
			if _, err := x.Event(ctx, framing.Event{Name: "message", Data: []byte(data)}); own(err) != nil {
				return err
			}
		}
		if _, err := x.End(ctx); own(err) != nil {
			return err
		}
	}
	_, err = x.Answer(ctx, []byte(`{}`))
	return own(err)
}

// own gives err where the adapter is at fault.
func own(err error) error {
	if err != nil && providers.AsFailure(err).Kind == messages.ErrorKind_ERROR_KIND_ADAPTER {
		return err
	}
	return nil
}

// sample is a request with one of everything.
func sample() *messages.CompletionRequest {
	words := func(s string) []*messages.Part { return []*messages.Part{{Content: &messages.Part_Text{Text: s}}} }
	image := &messages.Part{Content: &messages.Part_Payload{Payload: &messages.PayloadRef{Id: "blk", MediaType: "image/png", Size: 3}}}
	return &messages.CompletionRequest{
		CallId: "check", Question: "hello", MaxTokens: 100, Thinking: "low", ToolChoice: "auto", OutputSchemaJson: []byte(`{"type":"object"}`),
		Messages: []*messages.ChatMessage{
			{Role: messages.Role_ROLE_SYSTEM, Parts: words("Be brief.")},
			{Role: messages.Role_ROLE_USER, Parts: append(words("Look:"), image)},
			{
				Role: messages.Role_ROLE_ASSISTANT, Parts: words("I look."), Reasoning: "hm",
				Calls: []*messages.ToolInvocation{{VendorId: "c0", Name: "look", ArgumentsJson: []byte(`{"at":"it"}`)}},
			},
			{Role: messages.Role_ROLE_TOOL, VendorCallId: "c0", ToolName: "look", Parts: words("a cat")},
			{Role: messages.Role_ROLE_USER, Parts: words("And now?")},
		},
		Tools: []*messages.ToolDef{{Name: "look", Description: "Looks.", ParametersJson: []byte(`{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}`)}},
	}
}
