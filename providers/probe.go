package providers

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"homeagent/messages"
)

// Local is a model server that people run on their own machine.
type Local struct {
	// Name proposed for the source.
	Name string
	// Base of its OpenAI-compatible interface, which is asked for the models.
	Base string
	// Adapter and Source, the base URL, of the source; empty means openai at Base.
	Adapter, Source string
}

// Locals are the servers that FindLocal looks for.
var Locals = []Local{
	// Only its own interface lets the window be set; else it cuts in silence.
	{Name: "ollama", Base: "http://127.0.0.1:11434/v1", Adapter: "ollama", Source: "http://127.0.0.1:11434"},
	{Name: "llamacpp", Base: "http://127.0.0.1:8080/v1", Adapter: "llamacpp"},
	{Name: "lmstudio", Base: "http://127.0.0.1:1234/v1", Adapter: "lmstudio"},
}

// probeTime bounds the whole search: a server on loopback answers at once.
const probeTime = 500 * time.Millisecond

// FindLocal looks for model servers on loopback and gives a spec for each that
// answers, in the order of locals, with its first model that can chat. It never
// fails; nothing found is an empty list.
func (c *Client) FindLocal(ctx context.Context, locals []Local) []*messages.SourceSpec {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	found := make([]*messages.SourceSpec, len(locals))
	var wg sync.WaitGroup
	for i, l := range locals {
		wg.Go(func() {
			if model, ok := c.firstModel(ctx, l.Base); ok {
				found[i] = &messages.SourceSpec{
					Name: l.Name, Adapter: cmp.Or(l.Adapter, "openai"), BaseUrl: cmp.Or(l.Source, l.Base), Model: model, Enabled: true,
				}
			}
		})
	}
	wg.Wait()
	return slices.DeleteFunc(found, func(s *messages.SourceSpec) bool { return s == nil })
}

// firstModel asks a server for its models. A server that is no model server
// answers something else.
func (c *Client) firstModel(ctx context.Context, base string) (string, bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/models", nil)
	if err != nil {
		return "", false
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return "", false
	}
	defer resp.Body.Close()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if resp.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&list) != nil {
		return "", false
	}
	for _, m := range list.Data {
		if m.ID != "" && !strings.Contains(strings.ToLower(m.ID), "embed") {
			return m.ID, true
		}
	}
	return "", false
}
