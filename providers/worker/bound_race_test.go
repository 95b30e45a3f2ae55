//go:build race

package worker_test

// bound is none: the race detector maps more than any.
const bound = 0
