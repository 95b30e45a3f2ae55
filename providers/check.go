package providers

import (
	"context"
	"strings"
	"time"

	"homeagent/messages"
)

// testTime bounds the live completion of a test: a person waits at a prompt.
const testTime = time.Minute

// testAnswer is how much of a test's answer is kept.
const testAnswer = 200

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// TestSource makes one small live completion and says what came of it.
func (c *Client) TestSource(ctx context.Context, src Source) *messages.SourceTested {
	ctx, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	start := time.Now()
	const question = "Reply with the single word: ready"
	res, err := c.Stream(ctx, src, &messages.CompletionRequest{
		CallId: "test", Question: question,
		Messages: []*messages.ChatMessage{{
			Role: messages.Role_ROLE_USER, Parts: []*messages.Part{{Content: &messages.Part_Text{Text: question}}},
		}},
	}, Hooks{})
	out := &messages.SourceTested{Model: res.GetModel(), TookMs: time.Since(start).Milliseconds()}
	if err != nil {
		out.Failure = AsFailure(err).Proto()
		return out
	}
	out.Works = true
	out.Text = strings.TrimSpace(res.GetText())
	if len(out.Text) > testAnswer {
		out.Text = strings.ToValidUTF8(out.Text[:testAnswer], "") + "…"
	}
	return out
}
