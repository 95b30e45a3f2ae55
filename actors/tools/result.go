package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// normal is an owner's result as turns get it: a structured one as compact JSON, one that says of itself that it failed
// as a failure, none larger than the cap, and none without a taint. It returns a copy.
func normal(r *messages.ToolResult, most int) *messages.ToolResult {
	r = proto.CloneOf(r)
	if r.GetError() == nil {
		r.Content = compact(r.GetContent())
		if fault := faultIn(r.GetContent()); fault != nil {
			r.Error = fault
		}
	}
	if r.GetError() != nil {
		r.Content = ""
	}
	r.Content = capped(r.GetContent(), most)
	if r.GetTaint() == messages.Taint_TAINT_UNSPECIFIED {
		r.Taint = messages.Taint_TAINT_FOREIGN
	}
	return r
}

// compact takes the white space out of a JSON object or list; any other text stays as it is.
func compact(text string) string {
	inner := strings.TrimSpace(text)
	if inner == "" || inner[0] != '{' && inner[0] != '[' {
		return text
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(inner)) != nil {
		return text
	}
	return b.String()
}

// told is what a result may say of itself: in the form of tool servers, or as a map with an error.
type told struct {
	IsError *bool           `json:"isError"`
	Error   json.RawMessage `json:"error"`
	Message string          `json:"message"`
	OK      *bool           `json:"ok"`
	Success *bool           `json:"success"`
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
}

// maxFault is the most of a failed result that the model is shown, in bytes.
const maxFault = 2 << 10

// faultIn finds out whether a result says that it failed; nil for every other one. An empty error says nothing.
func faultIn(content string) *messages.ToolError {
	if !strings.HasPrefix(content, "{") {
		return nil
	}
	var t told
	if json.Unmarshal([]byte(content), &t) != nil {
		// One of the fields has another type than those who report failures give it; what is left may still say so.
		var loose struct {
			IsError *bool           `json:"isError"`
			Error   json.RawMessage `json:"error"`
		}
		if json.Unmarshal([]byte(content), &loose) != nil {
			return nil
		}
		t = told{IsError: loose.IsError, Error: loose.Error}
	}
	fine := is(t.OK, true) || is(t.Success, true) || is(t.IsError, false)
	reason := textOf(t.Error)
	switch {
	case is(t.IsError, true), is(t.OK, false), is(t.Success, false):
	case reason == "" || fine:
		return nil
	}
	if reason == "" {
		var said []string
		for _, c := range t.Content {
			said = append(said, c.Text)
		}
		reason = strings.TrimSpace(strings.Join(append(said, t.Message), "\n"))
	}
	if reason == "" {
		reason = content
	}
	return &messages.ToolError{Reason: reasonFailed, Detail: capped(reason, maxFault)}
}

func is(b *bool, want bool) bool { return b != nil && *b == want }

// textOf is the text of an error value: a text, or an object with something in it; anything else is none.
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil || len(object) == 0 {
		return ""
	}
	if json.Unmarshal(object["message"], &text) == nil && text != "" {
		return text
	}
	return string(raw)
}

// capped cuts a result that is too large, at a character, and says so.
func capped(text string, most int) string {
	if len(text) <= most {
		return text
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%s\n[cut: this is the first %d of %d bytes]", text[:cut], cut, len(text))
}
