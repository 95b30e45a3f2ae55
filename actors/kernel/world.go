package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"homeagent/actors/admin"
	"homeagent/actors/kit"
	"homeagent/actors/provider"
	"homeagent/actors/turn"
	"homeagent/configs"
	"homeagent/configs/paths"
	"homeagent/internal/egress"
	"homeagent/internal/obs"
	"homeagent/memory/approvals"
	"homeagent/memory/contextmem"
	"homeagent/memory/graphmem"
	ledgerengine "homeagent/memory/ledger"
	"homeagent/memory/lexical"
	"homeagent/memory/recall"
	"homeagent/memory/store"
	"homeagent/memory/usage"
	"homeagent/messages"
	"homeagent/pluginhost"
	"homeagent/providers"
	"homeagent/providers/lua"
)

// world is what the actors of a node are made of: the engines, and what was opened before the first actor.
type world struct {
	opt       Options
	started   time.Time
	build     obs.Build
	layout    paths.Layout
	log       *obs.Log
	logger    *slog.Logger
	metrics   *obs.Metrics
	db        *store.DB
	ledger    *ledgerengine.Ledger
	words     *lexical.Dictionary
	index     *lexical.Index
	events    *contextmem.Context
	graph     *graphmem.Graph
	approvals *approvals.Engine
	recall    *recall.Engine
	registry  *configs.Registry
	adapters  *lua.Engine
	client    *providers.Client
	book      *provider.Book
	usage     *usage.Engine
	door      *admin.Door
	rt        *kit.Runtime
	egress    *egress.Client
	plugins   map[string]pluginhost.Plugin
	guessed   sync.Map // names of the sources of which was told that their context window is a guess
	// lose ends the node with an error; any goroutine.
	lose func(*LostError)

	closers []closer
}

// closer closes one thing that the boot opened.
type closer struct {
	name string
	do   func() error
}

func (w *world) onClose(name string, do func() error) {
	w.closers = append(w.closers, closer{name, do})
}

// close closes what was opened, the last one first.
func (w *world) close() error {
	var errs []error
	for i := len(w.closers) - 1; i >= 0; i-- {
		if err := w.closers[i].do(); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", w.closers[i].name, err))
		}
	}
	w.closers = nil
	return errors.Join(errs...)
}

// settings is the configuration in force.
func (w *world) settings() *configs.Snapshot { return w.registry.Snapshot() }

// openStore opens the store with the engines over it.
func (w *world) openStore() error {
	var db *store.DB
	err := inFreshPages(func() (err error) {
		db, err = store.Open(w.layout.Store(), store.Options{
			Logger: w.log.Logger("store"), Reserve: w.opt.Reserve, Salvage: w.opt.Salvage, Broken: w.storeBroken,
		})
		return err
	})
	if errors.Is(err, store.ErrDamaged) {
		return fmt.Errorf("%w; restore a backup, or start homed with --salvage to go on without what is missing", err)
	}
	if err != nil {
		return err
	}
	w.db = db
	w.onClose("store", db.Close)
	w.words = &lexical.Dictionary{}
	w.index = &lexical.Index{Words: w.words}
	w.events = contextmem.New(db, nil)
	w.ledger, err = ledgerengine.Open(db, ledgerengine.Options{Indexer: w.events, Late: w.index, Logger: w.log.Logger("ledger")})
	if err != nil {
		return err
	}
	if w.graph, err = graphmem.Open(db); err != nil {
		return err
	}
	w.onClose("graph", w.graph.Close)
	w.approvals = approvals.New(db)
	w.usage = usage.NewEngine(db)
	w.recall = recall.New(db, w.index, w.graph)
	return nil
}

// openSettings opens secrets and configuration.
func (w *world) openSettings() error {
	var err error
	w.registry, err = configs.Open(configs.Options{
		Values: w.db.KV(store.Config), Secrets: w.db.KV(store.Secret),
		Vault: configs.NewVault(w.layout.SecretKey()), Environ: w.opt.Environ,
	})
	if err != nil {
		return err
	}
	// Dates are indexed in the person's zone; a change of it counts from the next start on.
	w.index.Zone = w.settings().Location()
	w.applySettings(w.settings())
	done, broken, err := recall.Upgrade(w.db, w.index)
	if err != nil {
		return fmt.Errorf("index what was said anew: %w", err)
	}
	if done+broken > 0 {
		w.log.Logger("memory").Info("what was said is indexed anew", "events", done, "broken", broken)
	}
	w.openMeaning()
	return nil
}

// applySettings puts the settings in force that are no actor's.
func (w *world) applySettings(s *configs.Snapshot) {
	if level, err := obs.ParseLevel(s.String(configs.KeyLogLevel)); err == nil {
		w.log.SetLevel(level)
	}
	if w.opt.Reserve == 0 {
		w.db.SetReserve(s.Size(configs.KeyStoreReserve))
	}
	w.ledger.SetPolicy(policyOf(s))
	w.allowEgress(s)
	for _, src := range s.Sources() {
		for _, key := range src.Keys {
			w.log.Secrets().Add(key.Reveal())
		}
	}
}

// openModels loads the adapters and makes the client of the model sources.
func (w *world) openModels() error {
	var err error
	if w.adapters, err = lua.Guarded(w.layout.Adapters(), w.log.Logger("adapters"), w.adapterRules()); err != nil {
		return err
	}
	w.onClose("adapters", func() error { w.adapters.Close(); return nil })
	w.client = providers.NewClient(providers.Options{
		Adapters: w.adapters, Log: w.log.Logger("providers"), Agent: "homed/" + w.build.Version,
		Media: w.loadMedia, Pictures: w.pictureLimits,
	})
	w.onClose("model client", func() error { w.client.Close(); return nil })
	w.book = provider.NewBook()
	return nil
}

// maxPersonal bounds personal.md.
const maxPersonal = 64 << 10

// turnSettings are read once for each turn, at its start.
func (w *world) turnSettings() turn.Settings {
	s := w.settings()
	recalled := s.Int(configs.KeyMemoryRecallLimit)
	if recalled == 0 {
		recalled = -1 // a person's zero turns it off, where that of turn is its default
	}
	prompt, window, guessed := promptTokens(s)
	w.warnGuessed(guessed)
	return turn.Settings{
		Persona: w.persona(s), Rounds: s.Int(configs.KeyAgentMaxToolTurns),
		PromptTokens: prompt, Window: window, Idle: w.idleStages(),
		History: s.Int(configs.KeyAgentMaxContextSize), Recalled: recalled,
		Zone: s.Location(), Call: s.Duration(configs.KeyAgentToolTimeout),
	}
}

// guessedWindow is the context window of a model of which nobody has told it, in tokens.
const guessedWindow = 32_000

// promptTokens is what a prompt may hold: a share of the smallest window among the sources that may be asked, since each
// of them may be the one, and at most the person's own limit. It also returns that window, zero when no model has one, and
// the sources whose window is a guess.
func promptTokens(s *configs.Snapshot) (prompt, window int, guessed []string) {
	prompt = s.Int(configs.KeyAgentContextLimit)
	for _, src := range s.Sources() {
		if !src.Enabled || src.Adapter == offlineAdapter {
			continue
		}
		reads := src.ContextWindow
		if reads <= 0 {
			reads = guessedWindow
			guessed = append(guessed, src.Name)
		}
		if window == 0 || reads < window {
			window = reads
		}
	}
	if window > 0 {
		prompt = min(prompt, int(float64(window)*s.Float(configs.KeyAgentContextRatio)))
	}
	return prompt, window, guessed
}

// offlineAdapter answers without a model: it reads as much as there is.
const offlineAdapter = "offline"

// warnGuessed tells once of each source that its context window is a guess.
func (w *world) warnGuessed(sources []string) {
	for _, name := range sources {
		if _, told := w.guessed.LoadOrStore(name, true); !told {
			w.logger.Warn("the context window of a model source is not known", "source", name, "taken_as_tokens", guessedWindow,
				"key", configs.SourceKey(name, configs.SourceContextWindow))
		}
	}
}

// persona is the head of the system prompt: the node's or the person's own, and what the person says of themselves.
func (w *world) persona(s *configs.Snapshot) string {
	text := s.String(configs.KeyAgentSystemPrompt)
	if text == "" {
		text = configs.Persona()
	}
	text = configs.Placeholders{
		AgentName: s.String(configs.KeyAgentName), NodeName: w.opt.Name,
		KernelVersion: w.build.Version, KernelCommit: w.build.Revision,
	}.Expand(text)
	if language := s.String(configs.KeyAgentLanguage); language != "" && language != "auto" {
		text += "\n\nAnswer in the language " + language + ", whatever language you are written to in."
	}
	personal := s.String(configs.KeyAgentPersonalPrompt)
	if personal == "" {
		personal = w.personal()
	}
	if personal != "" {
		text += "\n\n" + personal
	}
	return text
}

func (w *world) personal() string {
	info, err := os.Stat(w.layout.Personal())
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err == nil && !info.Mode().IsRegular() { // opening a pipe would hold the turn for ever
		w.logger.Warn("personal.md is no plain file")
		return ""
	}
	f, err := os.Open(w.layout.Personal())
	var b []byte
	if err == nil {
		b, err = io.ReadAll(io.LimitReader(f, maxPersonal+1))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		w.logger.Warn("personal.md cannot be read", "error", err)
		return ""
	}
	if len(b) > maxPersonal {
		w.logger.Warn("personal.md is cut", "limit_bytes", maxPersonal)
		b = b[:maxPersonal]
	}
	return string(bytes.TrimSpace(b))
}

// token looks a named token up in the store, for each request anew.
func (w *world) token(digest [32]byte) (*messages.TokenRecord, error) {
	t, err := w.approvals.Token(digest)
	if errors.Is(err, approvals.ErrNotFound) {
		return nil, nil
	}
	return t.Record, err
}

// decides tells whether a person may look at approvals; guard asks the same of each decision.
func (w *world) decides(p *messages.Principal) bool {
	return slices.Contains(w.settings().List(configs.KeyGuardDeciders), p.GetId())
}

// denied tells the guard of tools which may not run.
func (w *world) denied() []string { return w.settings().List(configs.KeyToolsDenied) }
