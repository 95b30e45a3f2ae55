//go:build !unix

package files

import (
	"errors"
	"syscall"
)

func noSpace(err error) bool { return errors.Is(err, syscall.ENOSPC) }
