// Package timers is the engine of timers: when their slots are, how people write that, and how timers are stored.
//
// # Slots
//
// A slot is an instant of whole seconds at which a timer is due. It follows from the timer alone, never from when the
// node started or looked:
//
//   - once: one slot.
//   - interval: the anchor, and every so many elapsed seconds after it. Days of a clock change do not move it against
//     UTC, so that it moves on the wall: what is to happen at a time of day is a cron timer.
//   - cron: the minutes of the wall clock of a zone that match five fields. A match that the wall clock skips (clocks go
//     forward) is due at the first instant after the gap; several such matches are one slot. A match that the wall clock
//     shows twice (clocks go back) is due the first time only. Day of month and day of week are joined by "or" when both
//     are restricted, as cron has it.
//
// A timer without a zone follows the zone of the node: when that changes, its later slots are those of the new zone. A
// slot that was taken is not taken again, and a new slot is always after the latest one that was taken.
//
// The parser of cron expressions is asked about wall clocks written as UTC, so that days of a clock change are decided in
// this package alone. It knows years up to 2099: a cron timer has no slot after them.
//
// # Keys
//
//	q <timer id>  messages.TimerRecord
//
// All functions may be called from any goroutine; a Schedule belongs to one at a time.
package timers
