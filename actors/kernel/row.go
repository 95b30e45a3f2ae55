package kernel

import (
	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
)

// Row is one kind of actor in the kernel's table.
type Row struct {
	// Kind names the row.
	Kind string
	// Paths are where the kernel starts actors of this kind; a kind without a path is spawned by other actors.
	Paths []string
	// Requires are the facilities that must be there before an actor of this row starts; Provides are those that are there
	// once all its paths are ready.
	Requires, Provides []kit.Facility
	// Restart and Limits of the kind.
	Restart kit.Restart
	Limits  kit.Limits
	// System actors cannot be stopped by people.
	System bool
	// Make makes the props of one actor: params are those of its Spawn, or nil for a path of the table.
	Make func(w *world, path string, params proto.Message) (kit.Props, error)
}

// props makes the actor of a row with what the table says of it.
func (r Row) props(w *world, path string, params proto.Message) (kit.Props, error) {
	p, err := r.Make(w, path, params)
	p.Kind, p.Restart, p.Limits, p.System = r.Kind, r.Restart, r.Limits, r.System
	return p, err
}
