// Command recallbench measures what memory finds: `go run ./internal/recallbench FILE... [--evidence FILE]`.
//
// A file is of the shape of LoCoMo (conversations with questions and the turns that answer them) or of MemoryBank
// (exchanges by day; questions and the exchanges that answer them come from --evidence). Each conversation becomes a node's
// memory of its own: its events go through the ledger and the late index into a store on disk, and the node's recall
// answers the questions.
//
// Evidence recall at k is the share of a question's evidence among the first k found, averaged over the questions, in
// percent; MRR is the mean of one over the rank of the first evidence. Questions without evidence are left out. An
// exchange of MemoryBank is found when either half of it is. Plain BM25 over words and speakers runs over the same texts.
// Intervals are those of 95 % by bootstrap over the questions, with a fixed seed.
//
// Beside the node's ranking stand rankings by one sign alone and rankings without one. With --abstention questions of
// other conversations are asked, whose answer is not there: what counts is whether memory says that it has none.
//
// A run without questions fails: nothing is reported that was not measured.
package main
