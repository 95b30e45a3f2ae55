// Package arch holds the architecture's rules as data (rules.go) and checks the repository against them: who may import
// whom, which entries the root may have, what a pure step may not touch, and what no tracked text may say. The linter
// enforces the import rules too, at the line where they are broken; this package also covers what a linter does not
// read (other file types, names, folders) and fails when it had nothing to read.
//
// [Load] lists the tracked files of a tree (all files where it is no git checkout), [Check] returns what breaks a rule.
// Nothing here knows this repository but rules.go, so the rules are tested on small made-up trees in testdata.
package arch
