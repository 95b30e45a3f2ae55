package providertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"homeagent/configs"
	"homeagent/messages"
	"homeagent/providers"
)

// Conversation is a request as fixtures write it.
type Conversation struct {
	Messages     []Message       `json:"messages"`
	Tools        []ToolForm      `json:"tools"`
	MaxTokens    int32           `json:"max_tokens"`
	Temperature  *float64        `json:"temperature"`
	Stream       bool            `json:"stream"`
	Thinking     string          `json:"thinking"`
	ToolChoice   string          `json:"tool_choice"`
	OutputSchema json.RawMessage `json:"output_schema"`
}

// Message is one message of a Conversation.
type Message struct {
	// Role is system, user, assistant or tool.
	Role string `json:"role"`
	Text string `json:"text"`
	// Media follows the text.
	Media []Media `json:"media"`
	// Calls, Reasoning and Replay are of assistants.
	Calls     []Tool          `json:"calls"`
	Reasoning string          `json:"reasoning"`
	Replay    json.RawMessage `json:"replay"`
	// ID and Name of the call that a tool message answers, and whether it failed.
	ID     string `json:"id"`
	Name   string `json:"name"`
	Failed bool   `json:"failed"`
}

// Media is a picture or a sound; Data is base64 in JSON.
type Media struct {
	Type string `json:"type"`
	Data []byte `json:"data"`
}

// ToolForm declares a tool.
type ToolForm struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// SourceForm is a source as fixtures write it.
type SourceForm struct {
	Model    string          `json:"model"`
	BaseURL  string          `json:"base_url"`
	Key      string          `json:"key"`
	Options  json.RawMessage `json:"options"`
	Extra    json.RawMessage `json:"extra"`
	Thinking string          `json:"thinking"`
	// Blind sources take neither pictures nor sounds.
	Blind bool `json:"blind"`
}

// WantRequest is what an adapter must make of a request. Body is compared as
// JSON, Headers as they are before the key is put in.
type WantRequest struct {
	Base     string            `json:"base"`
	Endpoint string            `json:"endpoint"`
	Headers  map[string]string `json:"headers"`
	Body     any               `json:"body"`
	// Bytes must stand in the body as they are; a body need not be given then.
	Bytes []string `json:"bytes"`
	// Error is a part of the message of the failure, when there must be one.
	Error string `json:"error"`
}

// Request gives the request and its media.
func (c Conversation) Request() *providers.Request {
	media := make(map[string][]byte)
	q := &messages.CompletionRequest{
		CallId: "call-1", MaxTokens: c.MaxTokens, Temperature: c.Temperature, Thinking: c.Thinking, ToolChoice: c.ToolChoice,
		OutputSchemaJson: c.OutputSchema,
	}
	for _, t := range c.Tools {
		q.Tools = append(q.Tools, &messages.ToolDef{Name: t.Name, Description: t.Description, ParametersJson: t.Parameters})
	}
	for _, m := range c.Messages {
		out := &messages.ChatMessage{
			Role:      messages.Role(messages.Role_value["ROLE_"+strings.ToUpper(m.Role)]),
			Reasoning: m.Reasoning, Replay: m.Replay, ReplaySource: "fixture", VendorCallId: m.ID, ToolName: m.Name, Failed: m.Failed,
		}
		if m.Text != "" {
			out.Parts = append(out.Parts, &messages.Part{Content: &messages.Part_Text{Text: m.Text}})
		}
		for _, f := range m.Media {
			id := fmt.Sprintf("blk_%d", len(media))
			media[id] = f.Data
			out.Parts = append(out.Parts, &messages.Part{Content: &messages.Part_Payload{
				Payload: &messages.PayloadRef{Id: id, MediaType: f.Type, Size: int64(len(f.Data))},
			}})
		}
		for _, t := range m.Calls {
			out.Calls = append(out.Calls, &messages.ToolInvocation{VendorId: t.ID, Name: t.Name, ArgumentsJson: t.Args, MadeId: t.Made})
		}
		q.Messages = append(q.Messages, out)
	}
	return &providers.Request{CompletionRequest: q, Stream: c.Stream, Media: media}
}

// Source gives the source.
func (s SourceForm) Source(adapter string) *providers.Source {
	key := configs.NewSecret(s.Key)
	return &providers.Source{
		Name: "fixture", Adapter: adapter, BaseURL: s.BaseURL, Model: s.Model, Options: s.Options, Extra: s.Extra, Thinking: s.Thinking,
		Vision: !s.Blind, Audio: !s.Blind, APIKey: func() configs.Secret { return key },
	}
}

// RunRequests checks what an adapter makes of requests: archives
// testdata/NAME/requests/*.txtar with source.json, request.json and want.json.
func RunRequests(t *testing.T, adapters providers.Adapters, adapter string) {
	names, err := fs.Glob(fixtures, path.Join("testdata", adapter, "requests", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(path.Base(name), ".txtar"), func(t *testing.T) {
			src, conv, want, err := requestFixture(name)
			if err != nil {
				t.Fatal(err)
			}
			a, err := adapters.Adapter(adapter)
			if err != nil {
				t.Fatal(err)
			}
			req := conv.Request()
			req.CompletionRequest, _ = providers.Fit(req.CompletionRequest, "fixture", a.Info())
			got, err := prepare(t.Context(), a, src.Source(adapter), req)
			want.compare(t, got, err)
		})
	}
}

// requestFixture reads one archive.
func requestFixture(file string) (*SourceForm, *Conversation, *WantRequest, error) {
	b, err := fixtures.ReadFile(file)
	if err != nil {
		return nil, nil, nil, err
	}
	src, conv, want := &SourceForm{}, &Conversation{}, &WantRequest{}
	into := map[string]any{"source.json": src, "request.json": conv, "want.json": want}
	for _, f := range txtar.Parse(b).Files {
		if into[f.Name] == nil {
			return nil, nil, nil, fmt.Errorf("unknown file %s", f.Name)
		}
		if err := strict(f.Data, into[f.Name]); err != nil {
			return nil, nil, nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		delete(into, f.Name)
	}
	if len(into) > 0 {
		return nil, nil, nil, fmt.Errorf("files are missing: %v", into)
	}
	return src, conv, want, nil
}

func prepare(ctx context.Context, a providers.Adapter, src *providers.Source, req *providers.Request) (*providers.Prepared, error) {
	x, err := a.Open(ctx, src, req, nil)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	return x.Prepare(ctx)
}

func (w WantRequest) compare(t *testing.T, got *providers.Prepared, err error) {
	t.Helper()
	if w.Error != "" {
		if err == nil || !strings.Contains(err.Error(), w.Error) {
			t.Errorf("error %v, want %q", err, w.Error)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if w.Base != "" && got.Base != w.Base {
		t.Errorf("base %s, want %s", got.Base, w.Base)
	}
	if got.Endpoint != w.Endpoint {
		t.Errorf("endpoint %s, want %s", got.Endpoint, w.Endpoint)
	}
	if w.Headers != nil && !reflect.DeepEqual(got.Headers, w.Headers) {
		t.Errorf("headers %v, want %v", got.Headers, w.Headers)
	}
	for _, b := range w.Bytes {
		if !strings.Contains(string(got.Body), b) {
			t.Errorf("body\n got %s\nwhich lacks %s", got.Body, b)
		}
	}
	if w.Body == nil && len(w.Bytes) > 0 {
		return
	}
	var body any
	if err := json.Unmarshal(got.Body, &body); err != nil {
		t.Fatalf("body %s: %v", got.Body, err)
	}
	if !reflect.DeepEqual(body, w.Body) {
		want, _ := json.Marshal(w.Body)
		t.Errorf("body\n got %s\nwant %s", got.Body, want)
	}
}
