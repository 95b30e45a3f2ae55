package agent

import (
	"crypto/sha256"
	"time"

	"github.com/oklog/ulid/v2"
)

// derivedID makes the input id of something that this package sends, from the time and what it stems from: a pure
// function, unique as far as seed is.
func derivedID(now time.Time, seed string) string {
	sum := sha256.Sum256([]byte(seed))
	var id ulid.ULID
	if err := id.SetTime(ulid.Timestamp(now)); err != nil {
		return ulid.ULID(sum[:16]).String()
	}
	copy(id[6:], sum[:10])
	return id.String()
}
