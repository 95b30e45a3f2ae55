package kernel

import (
	"context"
	"errors"

	"homeagent/configs"
	"homeagent/memory/embed"
	"homeagent/memory/recall"
)

// openMeaning loads the word vectors that the settings name, and has memory learn them, behind the start: recall goes by
// words alone until then. A file that cannot be used is told of in the log, and the node does without.
func (w *world) openMeaning() {
	path := w.settings().String(configs.KeyEmbeddingModel)
	if path == "" {
		return
	}
	log := w.log.Logger("memory")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	w.onClose("word vectors", func() error {
		cancel()
		<-done
		return nil
	})
	go func() {
		defer close(done)
		words, err := embed.Load(path, embed.Options{})
		if err != nil {
			log.Error("word vectors were not loaded; memory goes by words alone", "key", configs.KeyEmbeddingModel, "error", err)
			return
		}
		m := recall.NewMeaning(w.db, words)
		w.recall.SetMeaning(m)
		log.Info("word vectors are loaded", "words", words.Len(), "components", words.Space().Dim, "space", words.Space().Fingerprint)
		switch err := m.Learn(ctx); {
		case errors.Is(err, context.Canceled):
		case err != nil:
			log.Error("not all events have a vector", "vectors", m.Len(), "error", err)
		default:
			log.Info("all events have their vector", "vectors", m.Len())
		}
	}()
}
