//go:build race

package self

// bound is none: the race detector maps more than any.
const bound = 0
