package block

import (
	"errors"

	"homeagent/memory/store"
)

var (
	// ErrInvalid refuses a block without id or content, or an id with a zero
	// byte. Permanent.
	ErrInvalid = errors.New("block: invalid block")
	// ErrNoPayload refuses a block whose payload is not in the store. Permanent
	// until the payload is stored.
	ErrNoPayload = errors.New("block: payload not stored")
	// ErrDigest is returned when stored bytes do not have the digest of their
	// name. Permanent; the store needs a restore.
	ErrDigest = errors.New("block: payload does not match its digest")
)

// isMissing reports that a key has no value.
func isMissing(err error) bool { return errors.Is(err, store.ErrNotFound) }
