// Package adapters holds the adapter scripts that every node brings along.
// The contract is in package lua; a file of the same name in the data folder's
// adapters/ takes the place of one of these.
package adapters

import "embed"

// Files are the scripts, *.lua.
//
//go:embed *.lua
var Files embed.FS
