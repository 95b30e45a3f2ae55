package kernel

import (
	"runtime"
	"runtime/debug"
)

const (
	// openHeap bounds what a process may hold while the store is opened and the collector rests, in bytes.
	openHeap = 96 << 20
	// usedHeap is more than what a process has used before its store is opened, in bytes: the collector runs first at 4 MiB.
	usedHeap = 6 << 20
	// usedPiece is the size of a piece of it, small enough to fit between what is in use.
	usedPiece = 64 << 10
)

// inFreshPages calls open with a heap in which a large piece of memory lies in pages that were never used. The store's
// table of recent writes is 10 MB and mostly untouched: in fresh pages it costs nothing, but where it begins in pages
// that a collection has freed, the runtime clears the whole of it and an idle node holds 10 MB of zeros for ever. So what
// was used before is taken in small pieces while open runs, and the collector rests.
func inFreshPages(open func() error) error {
	percent := debug.SetGCPercent(-1)
	limit := debug.SetMemoryLimit(openHeap)
	var used [usedHeap / usedPiece][]byte
	for i := range used {
		used[i] = make([]byte, usedPiece)
	}
	defer func() {
		runtime.KeepAlive(&used)
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
	}()
	return open()
}
