// Package graphmem keeps what is known as dated facts in a graph: cayley over
// the node's one badger database.
//
// # Model
//
// A fact is a node f/<id> of its own, so that a change never deletes anything:
//
//	f/<id> --subj-->       e/<key of the subject>
//	f/<id> --pred-->       p/<key of the predicate>
//	f/<id> --obj-->        e/<key of the object>
//	f/<id> --valid_from--> time      since when it holds
//	f/<id> --valid_to-->   time      until when it held; absent while it holds
//	f/<id> --learned_at--> time      when the node learned it
//	f/<id> --source-->     s/<event> the entry of the context it came from
//	f/<id> --detail-->     text      exact words, confidence, principal, taint
//	f/<id> --retracted-->  time      tombstone: never returned again
//
// Confidence sits inside detail and not on an edge of its own: cayley rewrites
// the whole list of an (object, predicate) pair at each append, and a value
// such as 1.0 would be shared by nearly every fact.
//
// Every quad carries the source as its label. Cayley's label index keeps all
// unlabelled quads in one list, which would be rewritten by each batch; with
// labels the lists are short and answer "what came from this turn".
//
// # Names
//
// Cayley stores nodes under a hash, so names cannot be searched in it. The
// package keeps its own index of normalised names (case, width, spacing) beside
// the quads, written in the same transaction.
//
// # Writing
//
// One goroutine writes (actor memory/graph). A batch holds at most MaxBatch
// quads and is one badger transaction together with its names and with whatever
// the caller joins to it. After any error the QuadStore object is thrown away
// and made anew over the same open database: a QuadStore that has seen a failed
// batch keeps ids in its cache that were rolled back, and would attach the next
// fact to another entity without any error.
//
// # Reading
//
// Readers are safe for concurrent use with each other and with the writer. They
// read cayley's own indexes directly in one read transaction, by ids, under a
// budget of edges, nodes and time; the path language is not used.
package graphmem
