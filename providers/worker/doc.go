// Package worker runs an adapter's script in a process of its own, for files that
// nobody has confirmed: such a script can take the memory and the time of that
// process, and nothing of the node's.
//
// The node starts its own program anew and speaks to it over two pipes. A frame is
// four bytes of length, most significant first, and that many bytes of JSON. The
// node asks and the worker answers, one question at a time; before its answer the
// worker may write lines for the log, and ask for an HTTP request, which the node
// makes or refuses. A worker serves one call to a model after the other. It never
// has a key: headers come back from it with providers.KeyPlace in them.
//
// Nothing that a worker does is more than a failure of the kind adapter in one call.
// One that does not answer in time, ends, or sends what is no frame is killed.
package worker
