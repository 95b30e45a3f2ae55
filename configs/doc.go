// Package configs holds the settings of a node: what keys there are, what they
// may be, where a value comes from, and how secrets are kept.
//
// A key has a dotted name under core.* or plugin.<name>.*, a type, a unit, a
// default and legal values (Key). A name may hold one wildcard segment, such as
// core.llm.sources.<name>.model, for settings that exist once per named thing.
//
// A value is looked for in the environment first (HOMED_ and the dotted name in
// upper case with underscores), then among the stored ones, then in the
// declaration. Each value reports which of the three it came from.
//
// The Registry owns the keys and writes; what everybody else reads is a
// Snapshot, which never changes. Registry.Set validates a set of edits as a
// whole, writes them, and returns a Change that says what is different now and
// what waits for the next start.
//
// Wrong input is never replaced by a default in silence: an edit is refused, an
// environment variable stops the start, and a stored value that no longer fits
// is reported as a Problem until somebody sets it again.
//
// Values of secret keys are sealed in the store (Vault) and travel through the
// program as Secret, which prints as a placeholder.
package configs

//go:generate go run ./docgen ../docs/config.md
