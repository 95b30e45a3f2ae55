package provider

import (
	"sync/atomic"

	"homeagent/configs"
	models "homeagent/providers"
)

// Book is the table of sources with their secrets, for the workers of this
// package; messages and machines know names alone. Safe for concurrent use.
type Book struct {
	sources atomic.Pointer[map[string]models.Source]
}

// NewBook makes an empty book.
func NewBook() *Book {
	b := &Book{}
	b.sources.Store(&map[string]models.Source{})
	return b
}

// Get gives a source by name.
func (b *Book) Get(name string) (models.Source, bool) {
	s, ok := (*b.sources.Load())[name]
	return s, ok
}

// fill replaces all sources by those of a snapshot and tells what the machine
// may know of them. The offline source stands in where no other is on.
func (b *Book) fill(s *configs.Snapshot) loaded {
	var out loaded
	table := make(map[string]models.Source)
	on := false
	add := func(src models.Source) {
		table[src.Name] = src
		out.Sources = append(out.Sources, known{
			Spec: src.Spec(), HasKey: src.HasKey(),
			Route: models.Route{Name: src.Name, Priority: src.Priority, Disabled: src.Disabled, Print: src.Print()},
		})
		on = on || !src.Disabled
	}
	for _, c := range s.Sources() {
		add(models.FromConfig(c))
	}
	if _, taken := table[models.OfflineName]; !on && !taken {
		add(models.Offline())
		out.Sources[len(out.Sources)-1].BuiltIn = true
	}
	b.sources.Store(&table)
	return out
}
