package providertest

import (
	"strings"
	"testing"

	"homeagent/messages"
	"homeagent/providers"
	"homeagent/providers/replay"
)

// Ask is a small request for tests.
func Ask(text string) *messages.CompletionRequest { return replay.Ask(text) }

// RunRecordings checks an adapter against recordings: each as it was recorded,
// then under every transform and every truncation. It fails when there are no
// recordings.
func RunRecordings(t *testing.T, adapters providers.Adapters, adapter string, recs []replay.Recording) {
	if len(recs) == 0 {
		t.Fatal("no recordings")
	}
	for _, rec := range recs {
		t.Run(strings.ReplaceAll(rec.Name, "/", "_"), func(t *testing.T) {
			outcomes, err := replay.Check(t.Context(), adapters, adapter, rec)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range outcomes {
				for _, d := range o.Diffs {
					t.Errorf("%s: %s", o.Name, d)
				}
			}
		})
	}
}
