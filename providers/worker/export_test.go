package worker

import (
	"log/slog"
	"time"
)

// Patient is New with another patience.
func Patient(start Start, name string, files map[string][]byte, patience time.Duration) (*Adapter, error) {
	return newAdapter(start, name, name+".lua", files, slog.New(slog.DiscardHandler), patience)
}
