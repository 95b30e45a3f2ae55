//go:build !race

package worker_test

// bound is the memory of processes under test in bytes.
const bound = 512 << 20
