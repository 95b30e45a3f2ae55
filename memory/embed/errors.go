package embed

import "errors"

var (
	// ErrFormat is returned for a file that is none of the known forms, or is damaged.
	ErrFormat = errors.New("embed: not a file of word vectors")
	// ErrTruncated is returned for a file that ends before what it says it holds.
	ErrTruncated = errors.New("embed: the file of word vectors is cut short")
	// ErrBig is returned for a file that would take more than it may.
	ErrBig = errors.New("embed: the word vectors are too big")
)
