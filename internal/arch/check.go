package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Finding is one place that breaks a rule. Line is 0 where the rule is about the file as a whole.
type Finding struct {
	Rule, Path string
	Line       int
	// Text says what is wrong and why it matters.
	Text string
}

// String is the form that editors turn into a link.
func (f Finding) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %s: %s", f.Path, f.Rule, f.Text)
	}
	return fmt.Sprintf("%s:%d: %s: %s", f.Path, f.Line, f.Rule, f.Text)
}

// Check returns everything in t that breaks a rule of this package, in the order of the files.
func Check(t *Tree) []Finding {
	var out []Finding
	seen := make(map[string]bool) // roots and folders are reported once, not once per file
	bubbles := bubbles(t)
	for i := range t.Files {
		f := &t.Files[i]
		out = append(out, checkPlace(f, seen)...)
		out = append(out, checkPhrases(f)...)
		out = append(out, checkModules(f)...)
		if f.Syntax == nil {
			continue
		}
		out = append(out, checkImports(f)...)
		out = append(out, checkPure(f)...)
		out = append(out, checkSleep(f, bubbles[f.folder()])...)
		out = append(out, checkFutures(f)...)
	}
	return append(out, checkContracts(t)...)
}

// Smells returns the files that are longer than [Smell] lines: a hint, not a fault. Generated files and data are none.
func Smells(t *Tree) []Finding {
	var out []Finding
	for i := range t.Files {
		f := &t.Files[i]
		if f.Syntax == nil || f.isGenerated() {
			continue
		}
		if n := strings.Count(string(f.Text), "\n"); n > Smell {
			out = append(out, Finding{"long-file", f.Path, 0, fmt.Sprintf("%d lines, look for the seam", n)})
		}
	}
	return out
}

// under says whether p is root or below it.
func under(p, root string) bool { return p == root || strings.HasPrefix(p, root+"/") }

func underAny(p string, roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return under(p, r) })
}

var folderName = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

// checkPlace judges where a file lies: the root has fixed entries, folders have names that say something.
func checkPlace(f *File, seen map[string]bool) []Finding {
	var out []Finding
	top, _, _ := strings.Cut(f.Path, "/")
	if !seen[top] && !slices.Contains(Root, top) {
		out = append(out, Finding{"root-entry", top, 0, "the root has only the entries that section 2 of ARCHITECTURE.md lists"})
	}
	seen[top] = true
	if !strings.HasSuffix(f.Path, ".go") || inTestdata(f.Path) {
		return out
	}
	dir := f.folder()
	if seen[dir+"/"] {
		return out
	}
	seen[dir+"/"] = true
	if dir == "." {
		return append(out, Finding{"root-package", f.Path, 0, "the root holds no Go package"})
	}
	for name := range strings.SplitSeq(dir, "/") {
		switch {
		case slices.Contains(Unnamed, name) && !slices.Contains(Named, dir):
			out = append(out, Finding{"folder-name", dir, 0, strconv.Quote(name) + " does not say what is inside"})
		case !folderName.MatchString(name):
			out = append(out, Finding{"folder-name", dir, 0, strconv.Quote(name) + " is not one lower-case word"})
		}
	}
	return out
}

func checkPhrases(f *File) []Finding {
	if f.Text == nil || slices.ContainsFunc(Untold, func(p string) bool { return strings.HasPrefix(f.Path, p) }) {
		return nil
	}
	var out []Finding
	for _, p := range Phrases {
		if len(p.In) > 0 && !slices.ContainsFunc(p.In, func(end string) bool { return strings.HasSuffix(f.Path, end) }) {
			continue
		}
		if !p.Pattern.Match(f.Text) { // nearly always: only then are the lines counted
			continue
		}
		for i, line := range strings.Split(string(f.Text), "\n") {
			if m := p.Pattern.FindString(line); m != "" {
				out = append(out, Finding{p.Rule, f.Path, i + 1, fmt.Sprintf("%q: %s", strings.TrimSpace(m), p.Why)})
			}
		}
	}
	return out
}

// checkImports judges every import by the folder table, the actors' rows and the pins.
func checkImports(f *File) []Finding {
	var out []Finding
	for _, spec := range f.Syntax.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has refused it already
		}
		var why string
		if target == Module || strings.HasPrefix(target, Module+"/") {
			why = judge(f, strings.TrimPrefix(strings.TrimPrefix(target, Module), "/"))
		} else {
			why = judgeForeign(f, target)
		}
		if why != "" {
			out = append(out, Finding{"import", f.Path, f.line(spec.Pos()), f.folder() + " may not import " + target + ": " + why})
		}
	}
	return out
}

// judge returns why the import of our own package target is refused, or "".
func judge(f *File, target string) string {
	dir := f.folder()
	if underAny(target, Everybody) {
		return ""
	}
	if name, ok := actorOf(dir); ok {
		return judgeActor(f, name, target)
	}
	row, ok := rowOf(dir)
	switch {
	case !ok:
		return "its folder has no row in the table of internal/arch/rules.go"
	case under(target, row.Folder) || underAny(target, row.May):
		return ""
	case f.isTest() && underAny(target, row.Tests):
		return ""
	default:
		return row.Why
	}
}

// judgeActor applies the rule that is the same for all actors, with the engines of this one.
func judgeActor(f *File, name, target string) string {
	mine := Actors[name] // that there is a row is checked once per package
	switch {
	case under(target, "actors/"+name), under(target, "messages"), under(target, "configs"), under(target, "actors/kit"):
		return ""
	case underAny(target, mine):
		return ""
	case f.isTest() && underAny(target, engines):
		return ""
	case under(target, "actors"):
		return "an actor never imports another: they speak in messages"
	case underAny(target, engines):
		return "the engine is not named in the actor's row"
	default:
		return "actors import messages, configs, actors/kit and the engines of their row"
	}
}

// actorOf returns the actor package that dir belongs to; kit and kernel have rows of their own.
func actorOf(dir string) (string, bool) {
	rest, ok := strings.CutPrefix(dir, "actors/")
	if !ok || under(dir, "actors/kit") || under(dir, "actors/kernel") {
		return "", false
	}
	name, _, _ := strings.Cut(rest, "/")
	return name, true
}

// rowOf returns the longest row that holds dir.
func rowOf(dir string) (Row, bool) {
	var best Row
	found := false
	for _, r := range Rows {
		if under(dir, r.Folder) && len(r.Folder) >= len(best.Folder) {
			best, found = r, true
		}
	}
	return best, found
}

func judgeForeign(f *File, target string) string {
	for _, p := range Pins {
		if target != p.Import && (p.Exact || !under(target, p.Import)) {
			continue
		}
		free := underAny(f.folder(), p.Only) ||
			f.isTest() && underAny(f.folder(), p.Tests) ||
			p.Generated && f.isGenerated() ||
			p.Generators && f.isGenerator()
		if !free {
			return p.Why
		}
	}
	return ""
}

// checkPure judges state*.go files of actors: no clock, no goroutine, no IO.
func checkPure(f *File) []Finding {
	name := path.Base(f.Path)
	if !under(f.Path, "actors") || !strings.HasPrefix(name, "state") || f.isTest() {
		return nil
	}
	const why = "a pure step is a function of state, event and time"
	var out []Finding
	add := func(n ast.Node, what string) {
		out = append(out, Finding{"pure", f.Path, f.line(n.Pos()), what + ": " + why})
	}
	for _, spec := range f.Syntax.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err == nil && underAny(target, Pure.Imports) && !slices.Contains(Pure.Harmless, target) {
			add(spec, "import of "+target)
		}
	}
	names := importNames(f.Syntax)
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			add(n, "go statement")
		case *ast.SelectStmt:
			add(n, "select statement")
		case *ast.SelectorExpr:
			if full := qualified(n, names); slices.Contains(Pure.Calls, full) {
				add(n, full)
			}
		}
		return true
	})
	return out
}

// checkSleep judges test files: time passes in a synctest bubble or by a signal. Inside synctest.Test a sleep costs
// nothing and is how its clock is moved, so it is allowed there, lexically, and in what is handed to a function of the
// package that opens a bubble for it.
func checkSleep(f *File, bubbles map[string]bool) []Finding {
	if !f.isTest() {
		return nil
	}
	names := importNames(f.Syntax)
	var out []Finding
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if opensBubble(n, names) {
				return false
			}
			if id, ok := n.Fun.(*ast.Ident); ok && bubbles[id.Name] {
				return false
			}
		case *ast.SelectorExpr:
			if qualified(n, names) == "time.Sleep" {
				out = append(out, Finding{"sleep", f.Path, f.line(n.Pos()), "no sleeps in tests: testing/synctest for time, a signal for events"})
			}
		}
		return true
	})
	return out
}

func opensBubble(n *ast.CallExpr, names map[string]string) bool {
	s, ok := n.Fun.(*ast.SelectorExpr)
	return ok && qualified(s, names) == "testing/synctest.Test"
}

// bubbles finds, by folder, the functions of test files that take a function and open a bubble.
func bubbles(t *Tree) map[string]map[string]bool {
	out := make(map[string]map[string]bool)
	for i := range t.Files {
		f := &t.Files[i]
		if f.Syntax == nil || !f.isTest() {
			continue
		}
		names := importNames(f.Syntax)
		for _, d := range f.Syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || fn.Body == nil || !takesFunc(fn) {
				continue
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if c, ok := n.(*ast.CallExpr); ok && opensBubble(c, names) {
					if out[f.folder()] == nil {
						out[f.folder()] = make(map[string]bool)
					}
					out[f.folder()][fn.Name.Name] = true
				}
				return true
			})
		}
	}
	return out
}

func takesFunc(fn *ast.FuncDecl) bool {
	for _, p := range fn.Type.Params.List {
		if _, ok := p.Type.(*ast.FuncType); ok {
			return true
		}
	}
	return false
}

// checkFutures judges futures of the actor runtime: one without a positive timeout never leaves its registry, and the
// answer to a request whose sender is gone stays there for good. A linter sees names only, so the argument is read here.
func checkFutures(f *File) []Finding {
	var out []Finding
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 2 {
			return true
		}
		s, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || s.Sel.Name != "RequestFuture" && s.Sel.Name != "NewFuture" {
			return true
		}
		switch last := call.Args[len(call.Args)-1].(type) {
		case *ast.UnaryExpr:
			ok = last.Op != token.SUB
		case *ast.BasicLit:
			ok = last.Value != "0"
		}
		if !ok {
			out = append(out, Finding{"future", f.Path, f.line(call.Pos()), "a future without a positive timeout never leaves the registry"})
		}
		return true
	})
	return out
}

// importNames maps the name under which a file uses a package to its import path.
func importNames(file *ast.File) map[string]string {
	names := make(map[string]string, len(file.Imports))
	for _, spec := range file.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(target)
		if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
			name = path.Base(path.Dir(target)) // a major version is no package name
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = target
	}
	return names
}

// qualified returns "import path.Name" for a selector on an imported package, or "".
func qualified(s *ast.SelectorExpr, names map[string]string) string {
	id, ok := s.X.(*ast.Ident)
	if !ok || names[id.Name] == "" {
		return ""
	}
	return names[id.Name] + "." + s.Sel.Name
}

// checkContracts judges actor packages as a whole: each has its contract in doc.go and its row in [Actors].
func checkContracts(t *Tree) []Finding {
	has := make(map[string]bool)
	var order []string
	for i := range t.Files {
		f := &t.Files[i]
		dir := f.folder()
		if f.Syntax == nil || path.Dir(dir) != "actors" {
			continue
		}
		if _, known := has[dir]; !known {
			order = append(order, dir)
		}
		has[dir] = has[dir] || path.Base(f.Path) == "doc.go" && f.Syntax.Doc != nil
	}
	var out []Finding
	for _, dir := range order {
		if !has[dir] {
			out = append(out, Finding{"contract", dir, 0, "an actor package has its contract in doc.go"})
		}
		if name, ok := actorOf(dir); ok {
			if _, ok := Actors[name]; !ok {
				out = append(out, Finding{"actor-row", dir, 0, "it has no row in internal/arch/rules.go; add one that names the engines it needs"})
			}
		}
	}
	return out
}

var requirement = regexp.MustCompile(`^(?:require )?\s*(\S+) (v\d\S*)`)

// checkModules judges go.mod: pinned modules have their version, those that belong together have one, and nothing is
// replaced, since a replacement is lost on whoever imports the SDK.
func checkModules(f *File) []Finding {
	if f.Path != "go.mod" {
		return nil
	}
	var out []Finding
	common := ""
	for i, line := range strings.Split(string(f.Text), "\n") {
		add := func(text string) { out = append(out, Finding{"module", f.Path, i + 1, text}) }
		if strings.HasPrefix(line, "replace") || strings.Contains(line, "=>") {
			add("no module is replaced")
			continue
		}
		m := requirement.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if want := Versions[m[1]]; want != "" && m[2] != want {
			add(m[1] + " is pinned to " + want + "; change the pin in internal/arch/rules.go on purpose")
		}
		if slices.Contains(Together, m[1]) {
			if common == "" {
				common = m[2]
			}
			if m[2] != common {
				add(m[1] + " must have the version of its sisters, " + common)
			}
		}
	}
	return out
}
