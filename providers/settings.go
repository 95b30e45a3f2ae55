package providers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"homeagent/configs"
	"homeagent/messages"
)

// OfflineName is the source that answers where no model is configured.
const OfflineName = "offline"

// Offline is that source.
func Offline() Source { return Source{Name: OfflineName, Adapter: OfflineName} }

// FromConfig gives the source that a configuration describes.
func FromConfig(c configs.Source) Source {
	return Source{
		Name: c.Name, Adapter: c.Adapter, BaseURL: c.BaseURL, Model: c.Model,
		APIKey:  first(c.Keys),
		Keys:    c.Keys,
		Headers: c.Headers, Extra: []byte(c.ExtraBody), Options: []byte(c.Options),
		Whole: !c.Stream, NoTools: !c.Tools, Price: c.Price,
		Connect: c.TimeoutConnect, FirstByte: c.TimeoutFirstByte, Idle: c.TimeoutIdle, Total: c.TimeoutTotal,
		Priority: c.Priority, MaxConcurrent: c.MaxConcurrent, ContextWindow: c.ContextWindow, MaxTokens: c.MaxTokens,
		Temperature: c.Temperature, Thinking: effort(c.Thinking), Vision: c.Vision, Audio: c.Audio, Disabled: !c.Enabled,
	}
}

// first gives the key that a call sends when none was chosen.
func first(keys []configs.Secret) func() configs.Secret {
	return func() configs.Secret {
		if len(keys) == 0 {
			return configs.Secret{}
		}
		return keys[0]
	}
}

// effort gives what the switch means: off leaves it to the server, for not every
// model can be told to stop thinking.
func effort(thinking bool) string {
	if thinking {
		return "on"
	}
	return ""
}

// FromSpec gives the source of a spec and its key, with default limits.
func FromSpec(s *messages.SourceSpec, key string) Source {
	secret := configs.NewSecret(key)
	return Source{
		Name: s.GetName(), Adapter: s.GetAdapter(), BaseURL: s.GetBaseUrl(), Model: s.GetModel(),
		APIKey:   func() configs.Secret { return secret },
		Priority: int(s.GetPriority()), MaxConcurrent: int(s.GetMaxConcurrent()), ContextWindow: int(s.GetContextWindow()),
		Disabled: !s.GetEnabled(),
	}
}

// Spec gives what may be shown of a source.
func (s Source) Spec() *messages.SourceSpec {
	s = s.filled()
	return &messages.SourceSpec{
		Name: s.Name, Adapter: s.Adapter, BaseUrl: s.BaseURL, Model: s.Model, Priority: int32(s.Priority),
		MaxConcurrent: int32(s.MaxConcurrent), ContextWindow: int32(s.ContextWindow), Enabled: !s.Disabled,
		Vision: s.Vision, Audio: s.Audio, Tools: !s.NoTools,
	}
}

// HasKey tells whether a key is set.
func (s Source) HasKey() bool { return s.key().IsSet() }

// Print changes with every setting but the keys that may cure a failure; it
// gives no setting away. See Route.
func (s Source) Print() string {
	h := sha256.New()
	for _, part := range []string{s.Adapter, s.BaseURL, s.Model, string(s.Extra), string(s.Options)} {
		_, _ = fmt.Fprintf(h, "%d:%s,", len(part), part)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		_, _ = fmt.Fprintf(h, "%d:%s:%s,", len(name), name, s.Headers[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// FailureOf gives the failure in a result as the router needs it; nil when the
// call finished.
func FailureOf(r *messages.CompletionResult) *Failure {
	f := r.GetFailure()
	if f == nil {
		return nil
	}
	e := f.GetError()
	return &Failure{
		Kind: f.GetKind(), Source: r.GetSource(), Status: int(f.GetStatus()), Code: e.GetDetails()["vendor_code"],
		Message: e.GetMessage(), Hint: e.GetHint(), RetryAfter: millis(e.GetRetryAfterMs()),
		Visible: f.GetShown() || r.GetText() != "" || r.GetReasoning() != "" || r.GetRefusal() != "" || len(r.GetCalls()) > 0,
	}
}
