package main

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
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

// revision is that of the program where it was built with it, else that of the clone that it runs in; "-dirty" says that the
// tree differed when it was built. Outside of a clone it is unknown.
func revision() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		if r := settings["vcs.revision"]; len(r) >= 12 {
			if settings["vcs.modified"] == "true" {
				return r[:12] + "-dirty"
			}
			return r[:12]
		}
	}
	head, err := os.ReadFile(filepath.Join(".git", "HEAD"))
	if err != nil {
		return "unknown"
	}
	name, ok := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: ")
	if ok {
		if head, err = os.ReadFile(filepath.Join(".git", filepath.FromSlash(name))); err != nil {
			return "unknown"
		}
	}
	r := strings.TrimSpace(string(head))
	return r[:min(12, len(r))]
}
