// Package files is the built-in plugin that lets the agent list, read and write files in folders that its owner named.
//
// Tools: files_list and files_read (class read, pure), files_write (class write, idempotent: the same content again
// changes nothing), files_append (class write, once).
//
// Paths are written as <folder>/<path>, where <folder> is the last part of the path of an allowed folder; with one
// folder it may be left out, and an absolute path below a folder is taken too. Everything goes through os.Root: a path
// or a link that leads out of its folder is refused by the file system's own look-up, not by comparing names, so that
// swapping a link under way gains nothing. Pipes, devices and sockets are never opened for good, and a folder that holds
// the node's own data is no folder of the agent.
//
// A write lands as a whole or not at all: it is written beside its place, synced and renamed.
package files
