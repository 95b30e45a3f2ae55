package kernel

import "os"

// ownerOf is not known here: rights are not those of a mode.
func ownerOf(os.FileInfo) (int, bool) { return 0, false }
