package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"homeagent/memory/recall"
	"homeagent/messages"
)

const (
	toolRecall = "memory_recall"
	toolCommit = "memory_commit"
	// maxFacts of one call, so that the graph stores them in one batch.
	maxFacts = 50
)

const recallSchema = `{"type":"object","properties":{` +
	`"query":{"type":"string","description":"What to look for, in the words it may have been said in."},` +
	`"keywords":{"type":"array","items":{"type":"string"},"description":"Words or names to look for, instead of or beside query."},` +
	`"limit":{"type":"integer","minimum":1,"maximum":50,"description":"Most items; 10 if absent."}}}`

const commitSchema = `{"type":"object","required":["facts"],"properties":{"facts":{"type":"array","minItems":1,"maxItems":50,` +
	`"items":{"type":"object","required":["subject","predicate","object"],"properties":{` +
	`"subject":{"type":"string","description":"Who or what it is about, by name; \"user\" for the person you talk to."},` +
	`"predicate":{"type":"string","description":"The relation, such as \"lives in\", in the person's language."},` +
	`"object":{"type":"string","description":"The value or the other entity."},` +
	`"confidence":{"type":"number","minimum":0,"maximum":1,"description":"How sure it is; 1 if absent."},` +
	`"functional":{"type":"boolean","description":"True when there is one such value at a time (home town, job): the older fact then ends."},` +
	`"subject_type":{"type":"string","description":"Kind of the subject, such as person."},` +
	`"object_type":{"type":"string","description":"Kind of the object."},` +
	`"valid_from":{"type":"string","description":"Since when it holds, as YYYY-MM-DD or RFC 3339; now if absent."},` +
	`"valid_to":{"type":"string","description":"Until when it held; absent while it holds."}}}}}}`

// toolDefs are the tools of this package.
func toolDefs() []*messages.ToolDef {
	return []*messages.ToolDef{
		{
			Name: toolRecall, Provider: "memory", ParametersJson: []byte(recallSchema), ParallelSafe: true,
			ToolClass: messages.ToolClass_TOOL_CLASS_MEMORY,
			Effect:    messages.ToolEffect_TOOL_EFFECT_PURE, OnPreempt: messages.OnPreempt_ON_PREEMPT_CANCEL, TimeoutMs: 10_000,
			Description: "Search what was said before and the facts that are known. Answers with the exact words, who said them and when. " +
				"That nothing is found means that memory has none, not that it never happened.",
		},
		{
			Name: toolCommit, Provider: "memory", ParametersJson: []byte(commitSchema), ToolClass: messages.ToolClass_TOOL_CLASS_MEMORY,
			Effect: messages.ToolEffect_TOOL_EFFECT_IDEMPOTENT, OnPreempt: messages.OnPreempt_ON_PREEMPT_FINISH, TimeoutMs: 30_000,
			Description: "Remember facts as subject, predicate, object. Everything said is kept anyway: use it for facts worth finding by name. " +
				"Names stay in the person's own language.",
		},
	}
}

// fail is a refusal of a call, for the model.
func fail(c *messages.CallTool, e *messages.ToolError) *messages.ToolResult {
	return &messages.ToolResult{
		CallId: c.GetCall().GetCallId(), Name: c.GetCall().GetName(), Error: e, Taint: messages.Taint_TAINT_TRUSTED,
	}
}

// succeed is the result of a call.
func succeed(c *messages.CallTool, v any, taint messages.Taint) *messages.ToolResult {
	b, err := json.Marshal(v)
	if err != nil {
		return fail(c, &messages.ToolError{Reason: "failed", Detail: "The result could not be written as JSON."})
	}
	return &messages.ToolResult{CallId: c.GetCall().GetCallId(), Name: c.GetCall().GetName(), Content: string(b), Taint: taint}
}

// decode reads the arguments of a call strictly: an unknown name is an error, so that nothing is dropped in silence.
func decode(raw []byte, into any) *messages.ToolError {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = []byte("{}")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		return nil
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return &messages.ToolError{Reason: "type", Field: wrong.Field, Detail: "It must be " + wrong.Type.String() + ", not " + wrong.Value + "."}
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return &messages.ToolError{Reason: "type", Field: strings.Trim(name, `"`), Detail: "There is no such argument."}
	}
	return &messages.ToolError{Reason: "type", Detail: "The arguments are not a JSON object.", Hint: "Send one JSON object."}
}

type recallArgs struct {
	Query    string   `json:"query"`
	Keywords []string `json:"keywords"`
	Limit    int      `json:"limit"`
}

// question reads the arguments of memory_recall.
func question(c *messages.CallTool, now time.Time) (recall.Question, *messages.ToolError) {
	var a recallArgs
	if e := decode(c.GetCall().GetArgumentsJson(), &a); e != nil {
		return recall.Question{}, e
	}
	text := strings.TrimSpace(a.Query + " " + strings.Join(a.Keywords, " "))
	if text == "" {
		return recall.Question{}, &messages.ToolError{Reason: "required", Field: "query", Detail: "There is nothing to search for.", Hint: "Give query or keywords."}
	}
	if a.Limit < 0 || a.Limit > 50 {
		return recall.Question{}, &messages.ToolError{Reason: "type", Field: "limit", Detail: "It must be 1 to 50."}
	}
	return recall.Question{Text: text, Agent: c.GetAgent(), Limit: a.Limit, Now: now}, nil
}

type recalledJSON struct {
	ID      string  `json:"id"`
	When    string  `json:"when,omitempty"`
	Speaker string  `json:"speaker,omitempty"`
	Via     string  `json:"via"`
	Score   float64 `json:"score"`
	Text    string  `json:"text"`
}

type recallJSON struct {
	Items []recalledJSON `json:"items"`
	None  bool           `json:"none,omitempty"`
	Note  string         `json:"note,omitempty"`
}

// recalled is the result of memory_recall.
func recalled(a recall.Answer) recallJSON {
	out := recallJSON{Items: []recalledJSON{}, None: a.None}
	for _, i := range a.Items {
		j := recalledJSON{ID: i.GetId(), Speaker: i.GetSpeaker(), Via: i.GetVia(), Score: float64(int(i.GetScore()*1000+0.5)) / 1000, Text: i.GetText()}
		if us := i.GetAtUs(); us != 0 {
			j.When = time.UnixMicro(us).UTC().Format(time.RFC3339)
		}
		out.Items = append(out.Items, j)
	}
	switch {
	case a.None:
		out.Note = "Memory was searched and has nothing on this. That does not mean that it never happened."
	case len(a.Items) == 0:
		out.Note = "These words say nothing to search for. Name what it is about."
	}
	return out
}

type commitArgs struct {
	Facts []factArgs `json:"facts"`
}

type factArgs struct {
	Subject     string   `json:"subject"`
	Predicate   string   `json:"predicate"`
	Object      string   `json:"object"`
	Confidence  *float64 `json:"confidence"`
	Functional  bool     `json:"functional"`
	SubjectType string   `json:"subject_type"`
	ObjectType  string   `json:"object_type"`
	ValidFrom   string   `json:"valid_from"`
	ValidTo     string   `json:"valid_to"`
}

// batch reads the arguments of memory_commit.
func batch(c *messages.CallTool, now time.Time) (*messages.CommitFacts, *messages.ToolError) {
	var a commitArgs
	if e := decode(c.GetCall().GetArgumentsJson(), &a); e != nil {
		return nil, e
	}
	if n := len(a.Facts); n == 0 || n > maxFacts {
		return nil, &messages.ToolError{Reason: "required", Field: "facts", Detail: fmt.Sprintf("A call has 1 to %d facts, this one %d.", maxFacts, n)}
	}
	m := &messages.CommitFacts{Key: c.GetCall().GetCallId()}
	for i := range a.Facts {
		f, e := a.Facts[i].fact(now)
		if e != nil {
			e.Field = fmt.Sprintf("facts[%d].%s", i, e.GetField())
			return nil, e
		}
		if id := c.GetTaskId(); id != "" {
			f.Source = id + "/in" // the event that the turn answers
		}
		m.Facts = append(m.Facts, f)
	}
	return m, nil
}

func (a *factArgs) fact(now time.Time) (*messages.Fact, *messages.ToolError) {
	for _, x := range []struct{ name, value string }{{"subject", a.Subject}, {"predicate", a.Predicate}, {"object", a.Object}} {
		if strings.TrimSpace(x.value) == "" {
			return nil, &messages.ToolError{Reason: "required", Field: x.name, Detail: "It is empty."}
		}
	}
	f := &messages.Fact{
		Subject: a.Subject, Predicate: a.Predicate, Object: a.Object, Functional: a.Functional,
		SubjectType: a.SubjectType, ObjectType: a.ObjectType, LearnedUs: now.UnixMicro(),
	}
	if a.Confidence != nil {
		if *a.Confidence <= 0 || *a.Confidence > 1 {
			return nil, &messages.ToolError{Reason: "type", Field: "confidence", Detail: "It must be above 0 and at most 1."}
		}
		f.Confidence = *a.Confidence
	}
	var e *messages.ToolError
	if f.ValidFromUs, e = day("valid_from", a.ValidFrom); e != nil {
		return nil, e
	}
	if f.ValidToUs, e = day("valid_to", a.ValidTo); e != nil {
		return nil, e
	}
	from := f.GetValidFromUs()
	if from == 0 {
		from = f.GetLearnedUs()
	}
	if f.GetValidToUs() != 0 && f.GetValidToUs() < from {
		return nil, &messages.ToolError{Reason: "type", Field: "valid_to", Detail: "It is before valid_from.", Hint: "Give valid_from too when the fact has ended."}
	}
	return f, nil
}

// day reads a date or a time; zero for none.
func day(field, s string) (int64, *messages.ToolError) {
	if s == "" {
		return 0, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02", "2006-01", "2006"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UnixMicro(), nil
		}
	}
	return 0, &messages.ToolError{Reason: "type", Field: field, Detail: "It is no date.", Hint: "Write YYYY-MM-DD or RFC 3339."}
}

type commitJSON struct {
	Stored int      `json:"stored"`
	Known  int      `json:"known"`
	IDs    []string `json:"fact_ids"`
	Closed []string `json:"closed,omitempty"`
}

// committed is the result of memory_commit: real counts, of what was written and of what was known.
func committed(key string, r *messages.CommitFactsResult) commitJSON {
	out := commitJSON{IDs: r.GetFactIds(), Closed: r.GetClosed()}
	for _, id := range r.GetFactIds() {
		if strings.HasPrefix(id, key+"/") {
			out.Stored++
		} else {
			out.Known++
		}
	}
	return out
}
