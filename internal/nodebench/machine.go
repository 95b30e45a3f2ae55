package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Machine is what the figures were measured on.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory int64  `json:"memory_bytes"`
	OS     string `json:"os"`
	// Load is the load average of the last minute before the first measurement, and LoadAfter the one after the last: what
	// others did on the machine, and here the measurement itself.
	Load      float64 `json:"load"`
	LoadAfter float64 `json:"load_after"`
}

// Report is all of one run.
type Report struct {
	// Revision of the working tree, with "-dirty" where it differs from it.
	Revision string    `json:"revision"`
	Go       string    `json:"go"`
	At       time.Time `json:"at"`
	Machine  Machine   `json:"machine"`
	Figures  []Figure  `json:"figures"`
}

// describe fills in everything but the figures.
func describe(now time.Time) (*Report, error) {
	cpu, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return nil, err
	}
	mem, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return nil, err
	}
	total, err := kilobytes(mem, "MemTotal")
	if err != nil {
		return nil, err
	}
	load, err := loadAverage()
	if err != nil {
		return nil, err
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return nil, err
	}
	return &Report{
		Revision: revision(), Go: runtime.Version(), At: now.UTC().Truncate(time.Second),
		Machine: Machine{
			CPU: field(cpu, "model name"), Cores: runtime.NumCPU(), Memory: total, Load: load,
			OS: runtime.GOOS + "/" + runtime.GOARCH + " " + strings.TrimSpace(string(kernel)),
		},
	}, nil
}

func loadAverage() (float64, error) {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(b), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: load average: %w", errProc, err)
	}
	return load, nil
}

// revision asks git; outside of a clone it is unknown.
func revision() string {
	rev, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(rev))
	if changed, err := exec.Command("git", "status", "--porcelain").Output(); err == nil && len(changed) > 0 {
		name += "-dirty"
	}
	return name
}

// field is the value of the first line "name : value" of a file of /proc; empty when there is none.
func field(b []byte, name string) string {
	sc := bufio.NewScanner(bytes.NewReader(b))
	for sc.Scan() {
		if key, value, ok := strings.Cut(sc.Text(), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// kilobytes is the value of a line "name: 123 kB", in bytes.
func kilobytes(b []byte, name string) (int64, error) {
	number, unit, _ := strings.Cut(field(b, name), " ")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || unit != "kB" {
		return 0, fmt.Errorf("%w: %s is %q", errProc, name, field(b, name))
	}
	return n * 1024, nil
}

// memory is what a process holds, in bytes.
type memory struct {
	// rss is all that is resident, pss its share of it, anon what is not backed by a file: heap and stacks.
	rss, pss, anon int64
}

// readMemory reads the memory of a process.
func readMemory(pid int) (memory, error) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		return memory{}, err
	}
	rollup, err := os.ReadFile(dir + "smaps_rollup")
	if err != nil {
		return memory{}, err
	}
	return parseMemory(status, rollup)
}

func parseMemory(status, rollup []byte) (m memory, err error) {
	if m.rss, err = kilobytes(status, "VmRSS"); err != nil {
		return m, err
	}
	if m.anon, err = kilobytes(status, "RssAnon"); err != nil {
		return m, err
	}
	m.pss, err = kilobytes(rollup, "Pss")
	return m, err
}

// ticks is how many clock ticks Linux counts in a second for user space.
const ticks = 100

// readCPU is the processor time that a process has used.
func readCPU(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseCPU(string(b))
}

// parseCPU adds user and system time of a stat file; the name of the process in it may hold anything but ends with ")".
func parseCPU(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const user, system = 11, 12
	if len(fields) <= system {
		return 0, fmt.Errorf("%w: stat of %d fields", errProc, len(fields))
	}
	u, errUser := strconv.ParseInt(fields[user], 10, 64)
	s, errSystem := strconv.ParseInt(fields[system], 10, 64)
	if errUser != nil || errSystem != nil {
		return 0, fmt.Errorf("%w: times %q %q", errProc, fields[user], fields[system])
	}
	return time.Duration(u+s) * time.Second / ticks, nil
}
