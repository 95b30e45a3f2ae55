package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"homeagent/messages/api"
)

const root = "/api/v1"

// call asks for a value of type T.
func call[T any](ctx context.Context, c *Client, method, path string, body any) (*T, error) {
	out := new(T)
	if err := c.do(ctx, method, path, body, out); err != nil {
		return nil, err
	}
	return out, nil
}

// query appends parameters that are not empty.
func query(path string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// segments escapes a path with slashes, each segment for itself.
func segments(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// Submit hands over an input. With Wait it returns when the task has ended or the bound of the wait is over.
func (c *Client) Submit(ctx context.Context, s Submit) (*Submitted, error) {
	return call[Submitted](ctx, c, "POST", root+"/inputs", s)
}

// Input tells what is known of an input.
func (c *Client) Input(ctx context.Context, id string) (*Task, error) {
	return call[Task](ctx, c, "GET", root+"/inputs/"+url.PathEscape(id), nil)
}

// Stop stops what runs and what waits.
func (c *Client) Stop(ctx context.Context, s Stop) (*Stopped, error) {
	return call[Stopped](ctx, c, "POST", root+"/stop", s)
}

// Tree is the live tree.
func (c *Client) Tree(ctx context.Context) (*Actor, error) {
	return call[Actor](ctx, c, "GET", root+"/actors", nil)
}

// Actor is one actor with what it shows of its state.
func (c *Client) Actor(ctx context.Context, path string) (*Actor, error) {
	return call[Actor](ctx, c, "GET", root+"/actors/"+segments(path), nil)
}

// Order stops, restarts, pauses or resumes an actor.
func (c *Client) Order(ctx context.Context, path, verb string) (*Actor, error) {
	return call[Actor](ctx, c, "POST", root+"/actors/"+segments(path)+"/"+verb, nil)
}

// Agents lists all agents of the node.
func (c *Client) Agents(ctx context.Context) (*Agents, error) {
	return call[Agents](ctx, c, "GET", root+"/agents", nil)
}

// Agent shows one agent by its path, or a resident of main by its bare name.
func (c *Client) Agent(ctx context.Context, agent string) (*Agent, error) {
	return call[Agent](ctx, c, "GET", root+"/agents/"+segments(agent), nil)
}

// CreateAgent creates a resident.
func (c *Client) CreateAgent(ctx context.Context, a CreateAgent) (*Agent, error) {
	return call[Agent](ctx, c, "POST", root+"/agents", a)
}

// DestroyAgent ends a resident. With drop what waits ends as stopped; without, it is given back to the parent.
func (c *Client) DestroyAgent(ctx context.Context, agent string, drop bool) (*Agent, error) {
	flag := ""
	if drop {
		flag = "true"
	}
	return call[Agent](ctx, c, "DELETE", query(root+"/agents/"+segments(agent), "drop", flag), nil)
}

// MemoryQuery is what Memory asks for; all may be empty.
type MemoryQuery struct {
	Text, Entity, Agent string
	// Limit is from 1 to 200; zero means 20.
	Limit int
}

// Memory searches memory, or shows its latest events.
func (c *Client) Memory(ctx context.Context, q MemoryQuery) (*Memory, error) {
	limit := ""
	if q.Limit != 0 {
		limit = strconv.Itoa(q.Limit)
	}
	return call[Memory](ctx, c, "GET",
		query(root+"/memory", "text", q.Text, "entity", q.Entity, "agent", q.Agent, "limit", limit), nil)
}

// MemoryWhy explains what memory answers to a text, or shows the event or fact whose id it is. Entity is not used.
func (c *Client) MemoryWhy(ctx context.Context, q MemoryQuery) (*MemoryWhy, error) {
	limit := ""
	if q.Limit != 0 {
		limit = strconv.Itoa(q.Limit)
	}
	return call[MemoryWhy](ctx, c, "GET", query(root+"/memory/why", "text", q.Text, "agent", q.Agent, "limit", limit), nil)
}

// WriteFacts writes facts, all or none.
func (c *Client) WriteFacts(ctx context.Context, f Facts) (*FactsWritten, error) {
	return call[FactsWritten](ctx, c, "POST", root+"/memory/facts", f)
}

// Config lists keys below a prefix.
func (c *Client) Config(ctx context.Context, prefix string) (*Values, error) {
	return call[Values](ctx, c, "GET", query(root+"/config", "prefix", prefix), nil)
}

// ConfigKey shows one key.
func (c *Client) ConfigKey(ctx context.Context, key string) (*Value, error) {
	return call[Value](ctx, c, "GET", root+"/config/"+url.PathEscape(key), nil)
}

// SetConfig sets keys, all or none; nil means back to the default.
func (c *Client) SetConfig(ctx context.Context, values map[string]*string) (*ValuesSet, error) {
	body := api.SetValues{Values: make(map[string]json.RawMessage, len(values))}
	for k, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		body.Values[k] = b
	}
	return call[ValuesSet](ctx, c, "PUT", root+"/config", body)
}

// Sources lists model sources and servers found on the node's machine.
func (c *Client) Sources(ctx context.Context) (*Sources, error) {
	return call[Sources](ctx, c, "GET", root+"/providers", nil)
}

// AddSource tests a source and keeps it when it works or is forced.
func (c *Client) AddSource(ctx context.Context, s AddSource) (*Tested, error) {
	return call[Tested](ctx, c, "POST", root+"/providers", s)
}

// TestSource tests a source that is kept already.
func (c *Client) TestSource(ctx context.Context, name string) (*Tested, error) {
	return call[Tested](ctx, c, "POST", root+"/providers/"+url.PathEscape(name)+"/test", nil)
}

// ResetSource ends the cooldown of a source.
func (c *Client) ResetSource(ctx context.Context, name string) (*Sources, error) {
	return call[Sources](ctx, c, "POST", root+"/providers/"+url.PathEscape(name)+"/reset", nil)
}

// UseSource puts a source first.
func (c *Client) UseSource(ctx context.Context, name string) (*Sources, error) {
	return call[Sources](ctx, c, "POST", root+"/providers/"+url.PathEscape(name)+"/use", nil)
}

// RemoveSource forgets a source.
func (c *Client) RemoveSource(ctx context.Context, name string) (*Sources, error) {
	return call[Sources](ctx, c, "DELETE", root+"/providers/"+url.PathEscape(name), nil)
}

// Channels lists the channels.
func (c *Client) Channels(ctx context.Context) (*Channels, error) {
	return call[Channels](ctx, c, "GET", root+"/channels", nil)
}

// Nodes lists the nodes.
func (c *Client) Nodes(ctx context.Context) (*Nodes, error) {
	return call[Nodes](ctx, c, "GET", root+"/nodes", nil)
}

// Status tells how the node is.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	return call[Status](ctx, c, "GET", root+"/status", nil)
}

// UsageQuery says what usage is asked for: days as 2027-03-01, empty means from the first of this month until today; By
// names fields among day, source, model, agent, channel, conversation.
type UsageQuery struct {
	From, To string
	By       []string
}

// Usage tells what model calls used.
func (c *Client) Usage(ctx context.Context, q UsageQuery) (*UsageReport, error) {
	v := url.Values{}
	for name, value := range map[string]string{"from": q.From, "to": q.To, "by": strings.Join(q.By, ",")} {
		if value != "" {
			v.Set(name, value)
		}
	}
	path := root + "/usage"
	if len(v) > 0 {
		path += "?" + v.Encode()
	}
	return call[UsageReport](ctx, c, "GET", path, nil)
}

// Health asks whether the scheduler answers.
func (c *Client) Health(ctx context.Context) (*Health, error) { return c.health(ctx, "/healthz") }

// Ready asks whether the node takes new work.
func (c *Client) Ready(ctx context.Context) (*Health, error) { return c.health(ctx, "/readyz") }

// health reads the body of a success and of a failure alike; a node that is not well is no error of the question.
func (c *Client) health(ctx context.Context, path string) (*Health, error) {
	q, err := c.request(ctx, "GET", path, nil)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(q)
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	defer func() { _ = res.Body.Close() }() // as in do
	h := new(Health)
	if err := json.NewDecoder(res.Body).Decode(h); err != nil || h.Status == "" {
		return nil, errors.Join(ErrAnswer, err)
	}
	return h, nil
}

// Metrics is the page of /metrics.
func (c *Client) Metrics(ctx context.Context) ([]byte, error) {
	var b []byte
	err := c.do(ctx, "GET", "/metrics", nil, &b)
	return b, err
}

// Complete asks through the OpenAI-compatible interface, without streaming.
func (c *Client) Complete(ctx context.Context, q ChatRequest) (*ChatResponse, error) {
	q.Stream = false
	return call[ChatResponse](ctx, c, "POST", "/v1/chat/completions", q)
}

// Models lists the agents as models.
func (c *Client) Models(ctx context.Context) (*Models, error) {
	return call[Models](ctx, c, "GET", "/v1/models", nil)
}
