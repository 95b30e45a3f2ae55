package main

import "syscall"

// dying lets a child end with this process, however it ends.
func dying() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
