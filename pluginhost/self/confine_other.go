//go:build !unix

package self

import (
	"errors"
	"os/exec"
)

var errUnable = errors.New("this system has no limits for processes")

func group(*exec.Cmd) {}

// Confine gives up what this process does not need; here it can not.
func Confine(uint64) error { return errUnable }

// Renew gives the process another share of processor time.
func Renew() error { return errUnable }
