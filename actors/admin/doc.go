// Package admin is the door of a node: one HTTP handler on the TCP listener and on the local socket, and the actor
// that stands behind it.
//
// Who it is: one actor of a node, kind "admin", path "admin". It provides the facility "admin" and requires those whose
// actors its routes ask: events, channels, ledger, config, memory, providers, agent.
//
// HTTP requests are goroutines outside of the tree. They ask actors through Runtime and never touch the machine; the
// machine owns what lasts longer than a request: the channels "api", "cli" and "web", and the subscriptions of event
// streams and of callers that wait for an answer.
//
// Messages in:
//   - Started: serves (private effect), registers its three channels at channels, subscribes for the usage figures.
//   - Ok, Error, Busy or a Fault that answer a RegisterChannel: when all three stand, the node is announced in
//     run/homed.json (private effect), and with announced the actor is ready. A refused channel is tried again after
//     Params.Retry.
//   - EventBatch: handed to the connection that its subscription belongs to. Its queue is bounded; a connection that
//     does not keep up is told sync_required and closed, never silently skipped.
//   - opened, closed (private, from HTTP handlers): Subscribe, Unsubscribe at events.
//   - renew (timer): asks again for every subscription and channel, so that a restart of events or channels is noticed
//     and healed within Params.Renew.
//   - Drain: takes no new work (503 on HTTP), answers Ok. Streams go on until Stopping.
//   - Stopping: ends streams and waits; the servers get a moment to finish answers under way.
//   - failed (private): a listener broke or the announcement could not be written; a panic, so that the restart row decides.
//
// Phases: starting -> ready -> draining, or starting -> draining.
//
// A restart loses open connections and the usage figures. Listeners stay open over it: who connects meanwhile waits in
// the backlog instead of being refused. Clients of streams come back with Last-Event-ID.
//
// Who may ask: at the socket processes of the node's own user and root, by peer credentials, and over TCP whoever shows the
// token of run/admin.token, as the owner; at both whoever shows a named token, as the program or person that it stands
// for. A named token is looked up at each request, and requests under way end with it. One table, rights, says who may
// use which route, and what it does not name is the owner's. A request over TCP must name this server in Host and, if it
// comes from a page, in Origin. Loopback is no identity. Only /healthz and /readyz answer without a credential, and tell nothing else.
package admin
