//go:build unix

package kit

import (
	"syscall"
	"time"
)

// cpu is the processor time that this process has used. Unlike the wall clock it is little moved by what else the
// machine does.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
