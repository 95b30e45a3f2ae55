// Package lexical finds texts by their words: an inverted index in the node's
// store, written in the transaction that stores the texts, and ranked by BM25.
//
// # Layout
//
// Keys in the space 'x'. Numbers are those of EventRecord: dense over all events
// of the node. Every agent has an index of its own; <agent> ends with a zero byte.
//
//	t<agent><term>\0<number>>8>  postings of one block of 256 numbers: low byte of
//	                             the number, count (capped), length of the text
//	w<agent><word>\0<number>>8>  the same for dictionary words (second field)
//	d<agent><term>               in how many texts the term is
//	n<agent>                     figures: texts, total length, terms
//	f<number>                    what the ranking needs of one text (sealed record)
//	c<agent><conversation>       the last text of a conversation (sealed record)
//	v                            format of the index; see Rebuild
//
// Terms are described at Terms. The second field is written only while the
// dictionary is loaded and only ever adds to scores, so that what is found never
// depends on it.
//
// # Ranking
//
// BM25 (k1 0.9, b 0.4). A text is a hit only when it holds a term that is
// evidence (see QueryTerm) or stands next to such a text; words that ask and
// grammar never make one. The best by BM25 and those around them are weighed by
// several signs, see Weights: which words stand in a text and the two turns on
// each side, where each word counts more slowly the more often it comes; the
// session; who spoke; whether the turn before asked; the form of the text; dates.
// No weight was fitted to a single question.
//
// # Relevance
//
// A score tells which text is better, not whether it is any good. Relevance tells
// that: the share of what the query asks for that a text and its window hold,
// where rare words are worth more, and a name that no text holds counts double.
//
// # Bounds
//
// One call indexes up to MaxTermBytes of postings (about 10,000 English or 2,500
// Chinese characters); what is longer is found by its beginning. Writing is for the ledger's goroutine; reading is safe for all.
package lexical
