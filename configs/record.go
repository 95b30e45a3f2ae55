package configs

import (
	"encoding/base64"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// Stored is what the store knows about a stored value besides the value.
type Stored struct {
	// At is when it was set, UTC; the zero time when nothing is stored.
	At time.Time
	// By is who set it; nil when nobody was named. It is never changed.
	By *messages.Principal
}

// encodeRecord makes the stored form of a value: canonical text, or the sealed
// bytes of a secret in base64.
func encodeRecord(value string, at time.Time, by *messages.Principal) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(&messages.ConfigRecord{Value: value, SetUs: at.UnixMicro(), By: by})
}

func decodeRecord(record []byte) (string, Stored, error) {
	var r messages.ConfigRecord
	if err := proto.Unmarshal(record, &r); err != nil {
		return "", Stored{}, err
	}
	if r.GetValue() == "" || r.GetSetUs() <= 0 {
		return "", Stored{}, errors.New("the record has no value or no time")
	}
	return r.GetValue(), Stored{At: time.UnixMicro(r.GetSetUs()).UTC(), By: r.GetBy()}, nil
}

func sealedText(sealed []byte) string { return base64.StdEncoding.EncodeToString(sealed) }

func sealedBytes(text string) ([]byte, error) { return base64.StdEncoding.DecodeString(text) }
