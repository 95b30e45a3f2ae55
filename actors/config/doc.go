// Package config is the node's settings at run time.
//
// Who it is: one actor of a node, kind "config", path "config". It provides the facility "config". It keeps one
// configs.Registry busy: the registry decides what is legal, this actor decides in which order it is asked and who is
// told. Nothing of the registry is touched on the actor's goroutine: every reading and writing is a worker's.
//
// Messages in:
//   - ConfigList, from admin: answered with ConfigValues, sorted by key; a prefix that fits nothing gives none.
//   - ConfigGet, from admin: answered with ConfigValues of one entry, or its error: unknown_key, dropped_key, bad_name.
//   - ConfigSet, from admin and from tools of agents: answered with ConfigSetResult after the values are on disk. Sets
//     are written one at a time in the order in which they came. An error means that nothing was changed, except
//     config_store_failed, after which some keys may have been written; then subscribers are told of those.
//   - ConfigSubscribe, from any actor: answered with ConfigChanged, which holds all keys of the prefixes, then followed
//     by further ones, each with what is different, in the order of their versions and without a gap. The subscriber is
//     watched; its subscription ends with it.
//   - Ended of a subscriber.
//   - Fault of a ConfigChanged that was refused by a full mailbox: the subscription is read anew as a whole and sent
//     again after a second, so that a subscriber never stays behind in silence.
//
// Messages out, besides the answers: ConfigChanged to subscribers; AgentEvent of type system, code config_changed, with
// the names of the changed keys.
//
// State: the version last told; the subscriptions; the set being written and those that wait.
//
// Values of secrets are in no message: they are shown as "set" or "unset". An actor that needs a secret is given a
// handle on the snapshot by the kernel.
//
// Restart keys: a set of one is stored and answered with its name in restart; the value in force does not change and
// subscribers are not told.
//
// A restart loses the subscriptions, the sets that wait, and the answer of the one being written, whose values may then
// be on disk or not, as a whole or, for a failing disk, in part. The registry outlives the actor, so versions go on
// growing. Subscribers are told of the restart by the kernel and subscribe again.
//
// Bounds: Params.Waiting sets wait, a further one is refused with config_busy; Params.Subscriptions subscribers. The
// mailbox has the limits of the kernel's table.
package config
