//go:build !race

package self

// bound is the memory of processes under test in bytes.
const bound = 512 << 20
