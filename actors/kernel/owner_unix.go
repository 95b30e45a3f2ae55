//go:build unix

package kernel

import (
	"os"
	"syscall"
)

// ownerOf is the user that a file belongs to.
func ownerOf(info os.FileInfo) (int, bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(s.Uid), true
}
