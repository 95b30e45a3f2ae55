package timers

import (
	"crypto/sha256"
	"time"

	"github.com/oklog/ulid/v2"
)

// derivedID makes an id from a time and what it stems from: a pure function, unique as far as seed is.
func derivedID(ms uint64, seed string) string {
	sum := sha256.Sum256([]byte(seed))
	var id ulid.ULID
	if err := id.SetTime(ms); err != nil {
		return ulid.ULID(sum[:16]).String()
	}
	copy(id[6:], sum[:10])
	return id.String()
}

// taskID is the id of the input that a slot, or a run by hand, becomes. It bears the time at which it is handed over, so
// that it sorts after what was said before.
func taskID(now time.Time, key string) string { return derivedID(ulid.Timestamp(now), key) }

// callTimerID is the id of the timer that a tool call sets: the same call makes the same timer.
func callTimerID(call string) string {
	var ms uint64
	if len(call) >= ulid.EncodedSize {
		if task, err := ulid.ParseStrict(call[:ulid.EncodedSize]); err == nil {
			ms = task.Time()
		}
	}
	return derivedID(ms, "timer\x00"+call)
}
