# One command for every check. `.ci/tools` installs what the recipes call; `.ci/run` does all of it from a clean clone.

set shell := ["bash", "-euo", "pipefail", "-c"]

tools := env("HOMEAGENT_TOOLS", env("XDG_CACHE_HOME", env("HOME") / ".cache") / "homeagent/bin")
node := justfile_directory() / ".ci/node_modules"
export PATH := tools + ":" + node / "@bufbuild/buf-linux-x64/bin" + ":" + env("PATH")

# The node is pure Go; only the race detector needs C.
export CGO_ENABLED := "0"

version := `git describe --tags --always --dirty 2>/dev/null || echo dev`
revision := `git rev-parse HEAD 2>/dev/null || echo unknown`
stamp := "-X homeagent/internal/obs.version=" + version + " -X homeagent/internal/obs.revision=" + revision

# List the recipes.
default:
    @just --list --unsorted

# Build the commands, stripped, into bin/.
build:
    mkdir -p bin
    go build ./...
    go build -trimpath -ldflags '-s -w {{ stamp }}' -o bin/ ./cmd/...
    @ls -l bin | awk 'NR > 1 { printf "%6.1f MB  %s\n", $5 / 1e6, $9 }'

# Build for the other platforms of a node: a home server and a phone.
cross:
    GOOS=linux GOARCH=arm64 go build -o /dev/null ./cmd/homed
    GOOS=android GOARCH=arm64 go build -o /dev/null ./cmd/homed

# Run the tests.
test *args:
    go test {{ args }} ./...

# Run the tests under the race detector.
race *args:
    CGO_ENABLED=1 go test -race -timeout 15m {{ args }} ./...

# Lint everything, formatting included.
lint:
    golangci-lint run

# Format what is not generated.
fmt:
    golangci-lint fmt

# Make generated files other than those of protobuf anew.
generate:
    go generate ./...

# Generate again and fail where that changes a tracked file.
generated:
    #!/usr/bin/env bash
    set -euo pipefail
    before=$(git diff HEAD --stat --patch | sha256sum)
    go generate ./...
    after=$(git diff HEAD --stat --patch | sha256sum)
    if [ "$before" != "$after" ]; then
      echo 'generated files are not up to date: run `just generate` and commit' >&2
      git --no-pager diff HEAD --stat >&2
      exit 1
    fi

# Make the Go code of the vocabulary anew.
protogen:
    buf generate

# Lint the vocabulary, compare it with its last committed state, generate it again and compare.
proto:
    #!/usr/bin/env bash
    set -euo pipefail
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    buf lint

    # Numbers and names are for ever: compare with HEAD where the work tree differs from it, else with the state before the
    # last commit that touched a proto file.
    base=HEAD
    if git diff --quiet HEAD -- 'messages/*.proto'; then
      base=$(git log --skip=1 -1 --format=%H -- 'messages/*.proto')
    fi
    if [ -n "$base" ]; then
      mkdir "$work/before"
      git archive "$base" -- messages buf.yaml | tar -x -C "$work/before"
      buf breaking --against "$work/before"
      echo "vocabulary: no breaking change since ${base:0:12}"
    fi

    buf generate --output "$work/again"
    for made in "$work"/again/messages/*.pb.go; do
      cmp "$made" "messages/$(basename "$made")" || { echo 'run `just protogen` and commit' >&2; exit 1; }
    done
    for kept in messages/*.pb.go; do
      [ -e "$work/again/$kept" ] || { echo "$kept has no proto file" >&2; exit 1; }
    done

# Check the architecture's rules on every tracked file.
arch:
    go test -count=1 ./internal/arch

# Fail on functions that neither a command nor a test reaches.
dead:
    #!/usr/bin/env bash
    set -euo pipefail
    # What the SDK exports is for plugin authors, who are not here.
    found=$(deadcode -test ./... | grep -v '^pluginhost/sdk/' || true)
    if [ -n "$found" ]; then
      printf '%s\n' "$found" >&2
      exit 1
    fi
    echo 'no dead function'

# Run the benchmarks of one pattern, with allocations.
bench pattern='.' time='1s':
    go test -run '^$' -bench '{{ pattern }}' -benchmem -benchtime {{ time }} ./...

# Run whole nodes under a seed each: machines, disk faults, crashes; `just simulate -from 4711 -seeds 1 -v` shows one run.
simulate *args='-seeds 1000000 -budget 3m':
    go run ./internal/simulate {{ args }}

# Plant bugs in the machines and want the simulation to see each.
planted:
    HOMEAGENT_CI=1 go test -count=1 -timeout 30m -v -run 'TestPlanted|TestAltered' ./internal/simulate

# Show the figures of the whole node: the end-to-end tests in full, run anew, then the simulation and the benchmarks.
proof: build planted (simulate '-seeds 20000')
    HOMEAGENT_CI=1 HOMEAGENT_PROOF=1 go test -count=1 -timeout 60m -v ./internal/e2e/...
    @just bench

# Run every fuzz target for a number of inputs; a time would at random end a run in the middle of one, and fail it.
fuzz count='50000x':
    #!/usr/bin/env bash
    set -euo pipefail
    targets=0
    while IFS=: read -r file name; do
      echo "-- $name in $(dirname "$file")"
      go test -run '^$' -fuzz "^$name\$" -fuzztime '{{ count }}' "./$(dirname "$file")"
      targets=$((targets + 1))
    done < <(git grep -oE --full-name '^func Fuzz[A-Za-z0-9_]+' -- '*_test.go' | sed 's/func //')
    [ "$targets" -gt 0 ] || { echo 'no fuzz target found' >&2; exit 1; }
    echo "$targets fuzz targets"

# Everything that must hold before a change lands.
ci: arch proto generated lint build cross dead test race simulate (fuzz '2000x') (bench '.' '1x')

# Remove what was built.
clean:
    rm -rf bin dist
    go clean -testcache
