package ledger

import (
	"errors"
	"fmt"

	"homeagent/memory/block"
	"homeagent/memory/store"
	"homeagent/messages"
)

// Sentinels of this package; Fault gives the machine code of each.
var (
	// ErrInvalid refuses an operation that lacks something or makes no sense.
	ErrInvalid = errors.New("ledger: invalid operation")
	// ErrQueueFull refuses an input because too many have not ended.
	ErrQueueFull = errors.New("ledger: queue full")
	// ErrUnknownTask is returned for an input id that was never accepted.
	ErrUnknownTask = errors.New("ledger: unknown input")
	// ErrUnknownOutput is returned for a receipt without its intent.
	ErrUnknownOutput = errors.New("ledger: unknown output")
	// ErrEnded refuses a change of a task that has ended.
	ErrEnded = errors.New("ledger: task has ended")
	// ErrOwned refuses a raw write into a space that has its own operation.
	ErrOwned = errors.New("ledger: space has its own operation")
)

// queueRetry is when a refused input may be tried again, in milliseconds.
const queueRetry = 1000

// Fault returns err as it may cross an actor or reach a person; nil for nil.
func Fault(err error) *messages.Error {
	if err == nil {
		return nil
	}
	rows := []struct {
		err                 error
		code, message, hint string
		retry               int64
	}{
		{ErrQueueFull, "queue_full", "Too many inputs are waiting.", "Try again when some have ended.", queueRetry},
		{ErrUnknownTask, "unknown_input", "There is no such input.", "Check the id.", 0},
		{ErrUnknownOutput, "unknown_output", "There is no such output.", "", 0},
		{ErrEnded, "already_ended", "The task has ended.", "", 0},
		{ErrNotWaiting, "not_waiting", "The turn of this input has begun.", "Stop it, or send another input.", 0},
		{ErrOwned, "space_owned", "This kind of record has an operation of its own.", "", 0},
		{ErrInvalid, "invalid_operation", "The operation is not valid.", "", 0},
		{block.ErrInvalid, "invalid_block", "A block is not valid.", "", 0},
		{block.ErrNoPayload, "payload_missing", "A block refers to content that is not stored.", "Store the content first.", 0},
		{block.ErrDigest, "store_damaged", "Stored content is damaged.", "Restore a backup.", 0},
		{store.ErrDiskLow, "disk_low", "The disk is almost full; nothing can be stored.", "Make room; the node goes on by itself.", 10_000},
		{store.ErrTooBig, "too_big", "This is too much to store at once.", "Send large content as a file.", 0},
		{store.ErrBroken, "store_broken", "The disk failed while storing.", "Check the disk and restart the node.", 0},
		{store.ErrClosed, "store_closed", "The node is stopping.", "Try again after its start.", 0},
		{store.ErrRecord, "store_damaged", "A stored record is damaged.", "Restore a backup.", 0},
		{store.ErrSpace, "unknown_space", "There is no such key space.", "", 0},
	}
	for _, r := range rows {
		if errors.Is(err, r.err) {
			return &messages.Error{Code: r.code, Message: r.message, Hint: r.hint, RetryAfterMs: r.retry}
		}
	}
	return &messages.Error{Code: "internal", Message: "The node could not store this.", Hint: "See the log."}
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
