package provider

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"homeagent/configs"
	"homeagent/messages"
	models "homeagent/providers"
)

// Book is the table of sources with their secrets, for the workers of this
// package; messages and machines know names alone. It also knows who waits for
// a call, because a restart of providers loses its machine. Safe for concurrent
// use.
type Book struct {
	sources atomic.Pointer[map[string]models.Source]

	mu   sync.Mutex
	open map[string]*messages.Address
}

func (b *Book) opened(id string, to *messages.Address) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open[id] = to
}

func (b *Book) closed(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, id)
}

// orphans takes all open calls, in the order of their ids.
func (b *Book) orphans() []openCall {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]openCall, 0, len(b.open))
	for _, id := range slices.Sorted(maps.Keys(b.open)) {
		out = append(out, openCall{CallID: id, To: b.open[id]})
	}
	clear(b.open)
	return out
}

// NewBook makes an empty book.
func NewBook() *Book {
	b := &Book{open: make(map[string]*messages.Address)}
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
	out := loaded{
		Policy: models.Policy{Retries: s.Int(configs.KeyLLMRetries), MaxWait: s.Duration(configs.KeyLLMRetryWait)},
		Zone:   s.Location(), Currency: s.String(configs.KeyLLMCurrency), Keep: s.Duration(configs.KeyRetentionUsage),
		ImageSource: s.String(configs.KeyImageSource), AudioSource: s.String(configs.KeyAudioSource),
		BudgetDay: s.Float(configs.KeyLLMBudgetDay), BudgetMonth: s.Float(configs.KeyLLMBudgetMonth),
	}
	table := make(map[string]models.Source)
	on := false
	add := func(src models.Source) {
		table[src.Name] = src
		out.Sources = append(out.Sources, known{
			Spec: src.Spec(), HasKey: src.HasKey(), Price: src.Price,
			Route: models.Route{
				Name: src.Name, Priority: src.Priority, Disabled: src.Disabled, Print: src.Print(), Keys: src.KeyPrints(), Free: src.Free(),
			},
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
