package kernel

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"homeagent/configs"
	"homeagent/memory/block"
	ledgerengine "homeagent/memory/ledger"
	"homeagent/memory/store"
	"homeagent/messages"
	"homeagent/providers"
)

// pictureLimits are those in force.
func (w *world) pictureLimits() providers.PictureLimits {
	s := w.settings()
	return providers.PictureLimits{
		Bytes: s.Size(configs.KeyImageMaxBytes), Pixels: int64(s.Int(configs.KeyImageMaxPixels)), Edge: s.Int(configs.KeyImageMaxEdge),
	}
}

// keepMedia checks a picture or sound that came in and stores it. The block of the turn that takes it holds it; one that
// no turn takes goes after a day. Any goroutine.
func (w *world) keepMedia(mediaType string, data []byte) (*messages.PayloadRef, *messages.Error) {
	kind, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(mediaType)), "/")
	switch kind {
	case "image":
		known, err := providers.CheckPicture(data, w.pictureLimits())
		if err != nil {
			return nil, &messages.Error{
				Code: "bad_picture", Message: "The picture is not taken: " + strings.TrimPrefix(err.Error(), providers.ErrPicture.Error()+": ") + ".",
				Hint: "Send PNG, JPEG, GIF or WebP within core.input_processing.image.max_bytes and max_pixels.",
			}
		}
		mediaType = known
	case "audio":
		if limit := w.settings().Size(configs.KeyAudioMaxBytes); len(data) == 0 || int64(len(data)) > limit {
			return nil, &messages.Error{
				Code: "bad_audio", Message: fmt.Sprintf("The sound is not taken: %d bytes, at most %d are.", len(data), limit),
				Hint: "See core.input_processing.audio.max_bytes.",
			}
		}
	default:
		return nil, &messages.Error{
			Code: "unsupported_block", Message: fmt.Sprintf("Content of the type %.80q is not taken.", mediaType),
			Hint: "Send text, or image/… or audio/… with its media type.",
		}
	}
	ref, err := block.PutPayload(w.db, mediaType, data)
	if err != nil {
		return nil, ledgerengine.Fault(err)
	}
	return ref, nil
}

// loadMedia reads a payload for a model. Any goroutine.
func (w *world) loadMedia(_ context.Context, ref *messages.PayloadRef) ([]byte, error) {
	_, data, err := w.payload(ref.GetId())
	return data, err
}

func (w *world) payload(id string) (mediaType string, data []byte, err error) {
	err = w.db.View(func(txn store.Txn) error {
		mediaType, data, err = block.Payload(txn, id)
		return err
	})
	return mediaType, data, err
}

// findMedia tells what a payload is; nil for one that is not there. Any goroutine.
func (w *world) findMedia(id string) (*messages.PayloadRef, error) {
	mediaType, data, err := w.payload(id)
	if errors.Is(err, block.ErrNoPayload) || errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &messages.PayloadRef{Id: id, MediaType: mediaType, Size: int64(len(data))}, nil
}
