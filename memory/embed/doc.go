// Package embed makes vectors of texts.
//
// An Embedder belongs to one space, named by a fingerprint and a dimension; only vectors of the same space compare. There
// is one without a model to run: Words, static word vectors (fastText and word2vec text files, Numberbatch text files,
// fastText binary files), kept as int8, the most frequent ones only. A text is the mean of its words, rare ones weighing
// more.
//
// Loading is bounded in words, dimensions and bytes; a file that is cut short, damaged or of another form is refused with
// the place of the fault. Embedders are safe for concurrent use and never change.
package embed
