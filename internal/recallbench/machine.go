package main

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// machine is what the figures were measured on.
type machine struct {
	CPU   string `json:"cpu,omitempty"`
	Cores int    `json:"cores"`
	OS    string `json:"os"`
	Go    string `json:"go"`
	// Load is the load average of the last minute at the start; empty where the system does not tell.
	Load string `json:"load,omitempty"`
}

func describe() machine {
	m := machine{Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(b), " ")
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	return m
}

// revision asks git; outside of a clone it is unknown. "-dirty" says that the tree differs from it.
func revision() string {
	head, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	out := strings.TrimSpace(string(head))
	if diff, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output(); err != nil || len(diff) > 0 {
		out += "-dirty"
	}
	return out
}
