//go:build !linux

package main

import "syscall"

// dying can do nothing here; the figures need Linux anyway.
func dying() *syscall.SysProcAttr { return nil }
