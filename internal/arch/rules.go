package arch

import "regexp"

// Module is the import path of this repository.
const Module = "homeagent"

// Row is one line of the folder table: packages at or below Folder may import packages at or below each of May, and
// packages of their own folder. Where rows nest, the longest Folder wins and stands alone.
type Row struct {
	Folder string
	May    []string
	// Tests is what only _test.go files may import besides.
	Tests []string
	// Why is told to whoever breaks the row.
	Why string
}

// Everybody is what any package may import.
var Everybody = []string{"internal/obs"}

// engines are the packages without actors; an actor gets only those named in its row.
var engines = []string{"memory", "providers", "pluginhost"}

// Rows is the folder table of ARCHITECTURE.md, section 2.
var Rows = []Row{
	{Folder: "messages", Why: "the vocabulary stands alone, so that everything can speak it"},
	{Folder: "shm", Why: "the shared-memory segment is one small unsafe package that trusts nobody"},
	{Folder: "configs", May: []string{"messages"}, Why: "configuration is read before anything else exists"},
	{Folder: "memory", May: []string{"messages", "configs"}, Why: "memory engines have no actors and no outside"},
	{
		Folder: "providers", May: []string{"messages", "configs", "internal/luavm", "internal/egress"},
		Why: "a model source is an engine: it speaks HTTP through egress and Lua through luavm, and knows no actor",
	},
	{
		Folder: "providers/worker", May: []string{"messages", "configs", "providers"}, Tests: []string{"pluginhost"},
		Why: "it speaks over pipes; who starts the process hands them in",
	},
	{
		Folder: "pluginhost", May: []string{"messages", "shm", "configs", "internal/luavm", "internal/egress"},
		Why: "plugin kinds are engines without actors",
	},
	{
		Folder: "pluginhost/sdk", May: []string{"messages", "shm"},
		Why: "plugin authors import the SDK from outside: it may bring nothing of the node along",
	},

	{Folder: "actors/kit", May: []string{"messages", "configs"}, Why: "the shared shell knows no actor and no engine"},
	{
		Folder: "actors/kernel",
		May:    []string{"messages", "configs", "shm", "actors", "memory", "providers", "pluginhost", "internal/egress", "internal/luavm"},
		Why:    "the kernel alone knows every actor; nobody but a command imports it",
	},

	{
		Folder: "cmd/homed", May: []string{"actors/kernel", "configs", "internal/client"},
		Why: "a command is flags, wiring and exit codes; the node is built by the kernel",
	},
	{Folder: "cmd/waiter", May: []string{"internal/client"}, Why: "the client speaks to a node over its socket and in no other way"},
	{Folder: "cmd/hmapdev", May: []string{"providers", "pluginhost"}, Why: "the plugin developer's tool runs engines, never a node"},

	{Folder: "internal/obs", Why: "everybody imports obs, so obs imports nobody"},
	{Folder: "internal/luavm", Why: "the interpreter is shared by two engines and belongs to neither"},
	{Folder: "internal/client", May: []string{"messages", "configs"}, Why: "a client shares only vocabulary and paths with the node"},
	{Folder: "internal/egress", May: []string{"messages", "configs"}, Why: "the dialer is below everything that fetches"},
	{Folder: "internal/arch", Why: "the rules check everybody and depend on nobody"},
	{
		Folder: "internal/simulate", May: []string{"messages", "configs", "actors", "memory"},
		Tests: engines, Why: "the simulation runs the kernel's machines with other performers",
	},
	{Folder: "internal/recallbench", May: []string{"messages", "configs", "memory"}, Why: "recall is measured on the engines alone"},
	{
		Folder: "internal/e2e",
		May:    []string{"messages", "shm", "configs", "memory", "providers", "pluginhost", "actors", "internal"},
		Why:    "tests of the whole node may use anything",
	},
	{
		Folder: "internal/nodebench",
		May:    []string{"messages", "shm", "configs", "memory", "providers", "pluginhost", "actors", "internal"},
		Why:    "the figures of the whole node are measured by whatever it takes",
	},
}

// Actors is the row of each actor package: which engines it may import besides messages, configs and actors/kit. An
// actor that is missing here is a finding, so that its needs are decided when it is added. No actor imports another.
var Actors = map[string][]string{
	"admin":     nil,
	"agent":     nil,
	"channels":  nil,
	"cluster":   nil,
	"config":    nil,
	"context":   {"memory"},
	"curator":   {"memory"},
	"document":  {"memory"},
	"embedder":  {"memory"},
	"events":    nil,
	"graph":     {"memory"},
	"guard":     {"memory"},
	"knowledge": {"memory"},
	"ledger":    {"memory"},
	"memory":    {"memory"},
	"plugins":   {"pluginhost"},
	"provider":  {"providers", "memory/usage"},
	"scheduler": nil,
	"stages":    nil,
	"timers":    {"memory"},
	"tools":     {"pluginhost"},
	"turn":      nil,
}

// Pin says that packages at or below Import may be imported only by packages at or below one of Only.
type Pin struct {
	Import string
	Only   []string
	// Tests may import it besides, in _test.go files alone.
	Tests []string
	// Generated files may import it anywhere.
	Generated bool
	// Generators, files that only `go run` compiles ("//go:build ignore"), may import it anywhere.
	Generators bool
	// Exact leaves packages below Import alone.
	Exact bool
	Why   string
}

// Pins are the dependencies with one owner.
var Pins = []Pin{
	{Import: "github.com/asynkron/protoactor-go", Only: []string{"actors"}, Why: "the actor runtime stays behind actors/kit, so that its traps have one guard"},
	{Import: "github.com/dgraph-io/badger", Only: []string{"memory"}, Why: "one database per node, opened by memory/store"},
	{Import: "github.com/cayleygraph", Only: []string{"memory"}, Why: "the graph stays behind its engine"},
	{Import: "github.com/hidal-go/hidalgo", Only: []string{"memory"}, Why: "the graph's storage adapter stays beside the graph"},
	{Import: "github.com/yuin/gopher-lua", Only: []string{"internal/luavm"}, Why: "one interpreter with one set of host functions"},
	{Import: "github.com/go-ego/gse", Only: []string{"memory/lexical"}, Why: "the segmenter has a large dictionary that is loaded on need, in one place"},
	{Import: "github.com/hashicorp/cronexpr", Only: []string{"memory/timers"}, Why: "its idea of a clock change is not ours: it is asked about UTC alone, in one place"},
	{Import: "github.com/prometheus", Only: []string{"internal/obs", "actors"}, Why: "metrics go into the node's own registry, which obs makes"},
	{Import: "github.com/alecthomas/kong", Only: []string{"cmd"}, Why: "flags are parsed in commands"},
	{Import: "os/exec", Only: []string{"pluginhost", "internal/e2e", "internal/nodebench", "internal/arch"}, Tests: []string{"cmd", "memory", "actors/kernel", "internal/simulate"}, Why: "processes are started by pluginhost; others get a Runner from the kernel"},
	{Import: "unsafe", Only: []string{"shm"}, Generated: true, Why: "unsafe lives in one small package"},
	{Import: "C", Why: "the node is pure Go: CGO_ENABLED=0 builds one static file"},
	{Import: "log", Exact: true, Generators: true, Why: "logging comes from internal/obs as a *slog.Logger"},
	{Import: "plugin", Exact: true, Why: "plugins are processes, Lua or text; a loaded library cannot be unloaded"},
	{Import: "github.com/cayleygraph/cayley/graph/all", Why: "it links every backend, cgo ones too"},
	{Import: "github.com/cayleygraph/cayley/graph/kv/all", Why: "it links every key-value store"},
	{Import: "github.com/asynkron/protoactor-go/cluster", Why: "two home nodes need no cluster; see the actor facts"},
	{Import: "github.com/asynkron/protoactor-go/persistence", Why: "it has no error returns; the ledger persists"},
	{Import: "github.com/asynkron/protoactor-go/plugin", Why: "its passivation leaks a goroutine per stopped actor"},
}

// Root is every entry that the repository's root may have.
var Root = []string{
	"README.md", "ARCHITECTURE.md", "LICENSE", "NOTICE", "CHANGELOG.md", "Justfile", "go.mod", "go.sum", "docs", ".ci",
	".golangci.yml", "buf.yaml", "buf.gen.yaml", ".gitignore", ".gitattributes",
	"messages", "shm", "configs", "memory", "providers", "pluginhost", "actors", "cmd", "internal",
}

// Unnamed are folder names that say nothing about what is inside.
var Unnamed = []string{
	"pkg", "util", "utils", "common", "helper", "helpers", "misc", "shared", "lib", "libs", "scripts", "tools", "test", "tests", "base",
}

// Named are folders that bear such a name because it is the field's word for what is inside.
var Named = []string{"actors/tools"}

// Pure names what a state*.go file of an actor may not touch: its Step is a function of state, event and time.
var Pure = struct {
	// Imports are refused with everything below them, but for those in Harmless.
	Imports, Harmless []string
	// Calls are refused functions, as "import path.Name".
	Calls []string
}{
	Imports: []string{
		"os", "net", "io", "syscall", "log", "math/rand", "crypto/rand", "sync", "runtime", "database/sql", "bufio",
		"golang.org/x/sys", "github.com/asynkron/protoactor-go", "google.golang.org/grpc",
	},
	Harmless: []string{"net/netip", "net/url"},
	Calls: []string{
		"time.Now", "time.Since", "time.Until", "time.After", "time.AfterFunc", "time.Tick", "time.NewTimer", "time.NewTicker",
		"time.Sleep", "context.WithTimeout", "context.WithDeadline", "github.com/oklog/ulid/v2.Make", "github.com/oklog/ulid/v2.Now",
	},
}

// Phrase is a pattern that no tracked text may hold.
type Phrase struct {
	Rule    string
	Pattern *regexp.Regexp
	// In limits the phrase to files with one of these endings; empty is every text file.
	In  []string
	Why string
}

// Phrases are checked line by line. Host names are put together from pieces, for this file is tracked text too.
var Phrases = []Phrase{
	{
		Rule: "machine-path", Pattern: regexp.MustCompile(`(?m)(?:^|[^\w.~$}/-])/(?:home|root|work|tmp)/`),
		Why: "an absolute path of one machine; use a flag, t.TempDir or a path relative to the repository",
	},
	{
		Rule: "registry-host",
		Pattern: regexp.MustCompile(`(?i)\b(?:proxy\.golang|sum\.golang|index\.golang|registry\.npmjs|registry\.yarnpkg|registry\.npmmirror|deb\.debian|security\.debian|ftp\.debian|archive\.ubuntu|files\.pythonhosted|static\.crates)` +
			`\.(?:org|com|io)\b|\bgoproxy\.(?:cn|io)\b`),
		Why: "a package registry by name; the ordinary client knows where its packages are",
	},
	{
		Rule: "lock-url", Pattern: regexp.MustCompile(`"resolved"\s*:`), In: []string{"package-lock.json"},
		Why: "the lock file names a registry; write it with omit-lockfile-registry-resolved",
	},
	{
		Rule:    "origin",
		Pattern: regexp.MustCompile(`(?i)\bco-authored-by\b|\b(?:generated|written|made|built) (?:by|with) (?:an? )?(?:ai|llm|claude|chatgpt|gpt-?\d|copilot|codex)\b|\b(?:ai|coding) assistant (?:wrote|made|built)|\bas an ai\b`),
		Why:     "text says what the code does, not what made it",
	},
	{
		Rule:    "workshop",
		Pattern: regexp.MustCompile(`(?i)\bthe ceo\b|\bour workplace\b|\bthis workplace\b|\bsubmitting session\b|\bthis issue\b|\b(?:see|in|by|of) issue #?\d|\bissues (?:show|list)\b|\bmust[- ]show list\b|\bshared/(?:spec|design)\b`),
		Why:     "text speaks of the product, not of how work on it is organised",
	},
	{
		Rule: "promise", Pattern: regexp.MustCompile(`\b(?:TODO|FIXME|XXX|HACK)\b`), In: []string{".go", ".lua", ".proto", ".md", ".yml", ".yaml", ".sh"},
		Why: "a promise instead of code: finish it, or leave it out and say so in the documentation",
	},
}

// Untold are files that phrases are not searched in: the rules themselves, the trees that break them on purpose, and
// checksums.
var Untold = []string{"internal/arch/rules.go", "internal/arch/testdata/", "go.sum"}

// Smell is the length in lines from which a Go file is reported, without failing: look for the seam.
const Smell = 500

// Versions are the modules that are upgraded by name only, each after its traps were looked at again.
var Versions = map[string]string{
	"github.com/asynkron/protoactor-go": "v0.0.0-20240822202345-3c0e61ca19c9",
	"github.com/cayleygraph/cayley":     "v0.7.7-0.20240706181042-81dcd7d73e45",
	"github.com/dgraph-io/badger/v4":    "v4.9.6",
	"github.com/go-ego/gse":             "v0.80.3",
	"github.com/yuin/gopher-lua":        "v1.1.2",
	"google.golang.org/protobuf":        "v1.36.12",
}

// Together are modules that build only at one common version.
var Together = []string{
	"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/metric", "go.opentelemetry.io/otel/trace",
	"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/sdk/metric",
}
