package tools

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"homeagent/messages"
)

// noLoader refuses what a schema refers to beyond itself: a definition is whole, and nothing is fetched or read for it.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema may not refer to %s", url)
}

// compile makes the checker of a tool's arguments. No schema means any object.
func compile(text []byte) (*jsonschema.Schema, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte(`{"type":"object"}`)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("its parameters are not JSON: %w", err)
	}
	object, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New("its parameters are not a JSON Schema object")
	}
	if t, has := object["type"]; has && t != "object" {
		return nil, fmt.Errorf("its parameters have the type %v, want object", t)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	const url = "tool:///parameters.json"
	if err := c.AddResource(url, doc); err != nil {
		return nil, fmt.Errorf("its parameters: %w", err)
	}
	s, err := c.Compile(url)
	if err != nil {
		return nil, fmt.Errorf("its parameters: %w", err)
	}
	return s, nil
}

// check returns the arguments to run a tool with, or why it may not run. Bytes that fit come back as they are.
func check(s *jsonschema.Schema, args []byte) ([]byte, *messages.ToolError) {
	if len(bytes.TrimSpace(args)) == 0 {
		args = []byte(`{}`)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return nil, &messages.ToolError{
			Reason: reasonType, Detail: "The arguments are not JSON: " + err.Error(), Hint: "Send one JSON object.",
		}
	}
	if _, ok := doc.(map[string]any); !ok {
		return nil, &messages.ToolError{
			Reason: reasonType, Detail: "The arguments are not a JSON object.", Hint: "Send one JSON object.",
		}
	}
	first := s.Validate(doc)
	if first == nil {
		return args, nil
	}
	mended := mend(s, doc, maxMend)
	if s.Validate(mended) == nil {
		if text, err := json.Marshal(mended); err == nil {
			return text, nil
		}
	}
	return nil, explain(first)
}

// maxMend ends the mending of schemas that refer to themselves.
const maxMend = 32

// mend puts values right that are of the wrong type and mean one thing only. It changes nothing else, and leaves what it
// is given as it is.
func mend(s *jsonschema.Schema, v any, depth int) any {
	if s == nil || depth == 0 {
		return v
	}
	if s.Ref != nil {
		v = mend(s.Ref, v, depth-1)
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = mend(s.Properties[k], e, depth-1)
		}
		return out
	case []any:
		item := s.Items2020
		if i, ok := s.Items.(*jsonschema.Schema); ok {
			item = i
		}
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = mend(item, e, depth-1)
		}
		return out
	case string:
		return mendText(s, v, depth)
	default:
		return v
	}
}

// mendText reads a text as what the schema wants in its place: a boolean in any case, a number, or a list or object that
// was written as text.
func mendText(s *jsonschema.Schema, text string, depth int) any {
	if s.Types == nil {
		return text
	}
	types := s.Types.ToStrings()
	if slices.Contains(types, "string") {
		return text
	}
	for _, t := range types {
		switch t {
		case "boolean":
			if strings.EqualFold(text, "true") || strings.EqualFold(text, "false") {
				return strings.EqualFold(text, "true")
			}
		case "integer", "number":
			if _, err := strconv.ParseFloat(text, 64); err == nil && json.Valid([]byte(text)) {
				return json.Number(text)
			}
		case "array", "object":
			doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			if _, list := doc.([]any); err == nil && list && t == "array" {
				return mend(s, doc, depth-1)
			}
			if _, object := doc.(map[string]any); err == nil && object && t == "object" {
				return mend(s, doc, depth-1)
			}
		}
	}
	return text
}

// explain turns the first fault of arguments into words for the model; the others are named behind it.
func explain(err error) *messages.ToolError {
	var v *jsonschema.ValidationError
	if !errors.As(err, &v) {
		return &messages.ToolError{Reason: reasonType, Detail: err.Error()}
	}
	faults := leaves(v, nil)
	slices.SortStableFunc(faults, func(a, b *jsonschema.ValidationError) int { // the library walks maps
		return cmp.Or(
			slices.Compare(a.InstanceLocation, b.InstanceLocation),
			strings.Compare(fmt.Sprint(a.ErrorKind.KeywordPath()), fmt.Sprint(b.ErrorKind.KeywordPath())),
		)
	})
	out := fault(faults[0])
	const most = 3
	for _, f := range faults[1:min(len(faults), most)] {
		out.Detail += " " + fault(f).GetDetail()
	}
	if n := len(faults) - most; n > 0 {
		out.Detail += fmt.Sprintf(" And %d more.", n)
	}
	return out
}

func leaves(v *jsonschema.ValidationError, out []*jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(v.Causes) == 0 {
		return append(out, v)
	}
	for _, c := range v.Causes {
		out = leaves(c, out)
	}
	return out
}

var english = message.NewPrinter(language.English)

func fault(v *jsonschema.ValidationError) *messages.ToolError {
	at := strings.Join(v.InstanceLocation, ".")
	switch k := v.ErrorKind.(type) {
	case *kind.Required:
		field := k.Missing[0]
		if at != "" {
			field = at + "." + field
		}
		return &messages.ToolError{
			Reason: reasonRequired, Field: field, Detail: fmt.Sprintf("Missing: %s.", strings.Join(k.Missing, ", ")),
			Hint: "Give every argument that the tool requires.",
		}
	case *kind.Type:
		return &messages.ToolError{
			Reason: reasonType, Field: at,
			Detail: fmt.Sprintf("%s is of type %s, want %s.", named(at), k.Got, strings.Join(k.Want, " or ")),
			Hint:   "Send it in the type that the tool wants.",
		}
	default:
		return &messages.ToolError{
			Reason: reasonType, Field: at, Detail: fmt.Sprintf("%s: %s.", named(at), v.ErrorKind.LocalizedString(english)),
			Hint: "Look at the tool's parameters and send what they allow.",
		}
	}
}

func named(at string) string {
	if at == "" {
		return "The arguments"
	}
	return at
}
