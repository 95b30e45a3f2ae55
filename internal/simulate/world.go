package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/internal/simulate/disk"
	"homeagent/internal/simulate/host"
	"homeagent/messages"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// bug changes the node on purpose, to show that the invariants see it; the zero value changes nothing.
type bug struct {
	// wrap may replace a machine.
	wrap func(kind string, m kit.Machine) kit.Machine
	// disk may change the disk.
	disk func(d *disk.Disk)
}

// violation is an invariant that did not hold.
type violation struct {
	invariant string
	text      string
}

func (v *violation) Error() string { return v.invariant + ": " + v.text }

// world is one run of a node.
type world struct {
	plan    plan
	bug     bug
	rng     *rand.Rand
	disk    *disk.Disk
	outside *outside
	host    *host.Host
	values  map[string]string
	checks  *checks
	rec     *recorder
	began   time.Time

	epoch    uint64
	table    []row
	layer    int
	ready    map[string]bool
	up       bool
	bootAt   time.Time
	dying    verb // how the process ends, once the step is over
	stopping *stopping

	next    int // action
	waited  int // steps since its time came
	later   []later
	asks    map[string]func(proto.Message)
	number  int
	steps   uint64
	base    uint64
	healed  bool
	healAt  time.Time
	last    bool // the final restart is done
	bad     *violation
	results map[string]*fate
	timers  []string
	// seen counts what actors were given, by type; nil counts nothing.
	seen  map[string]int
	acted time.Time // when the last action was done
	quiet time.Time // since when nothing is open
}

// later is something that happens by itself at a time.
type later struct {
	at time.Time
	do func()
}

// stopping is an orderly stop under way.
type stopping struct {
	since   time.Time
	drained bool
	layer   int
}

// fate is what people know of an input.
type fate struct {
	input  *messages.Input
	result *messages.SubmitResult // nil: no answer came
}

// start is when every run begins.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	bootLimit = 30 * time.Second
	stopLimit = 60 * time.Second
	// calm is within what time everything must have ended once nothing new comes and nothing is broken.
	calm = 2 * time.Hour
	// patienceEnd is how long after the last action what is broken stays broken.
	patienceEnd = 90 * time.Second
	// pause is how long nothing must be open for the run to be over.
	pause = 3 * time.Minute
	// mostSteps of a run: more means that it goes round in circles.
	mostSteps = 200_000
)

func newWorld(p plan, b bug, rec *recorder) *world {
	w := &world{
		plan: p, bug: b, rng: rand.New(rand.NewPCG(p.seed, 0x6f72646572)), disk: disk.New(), outside: newOutside(p.seed),
		values: map[string]string{configs.KeySchedulerCooldown: "2s"}, rec: rec, began: start,
		acted: start, asks: map[string]func(proto.Message){}, results: map[string]*fate{},
	}
	for _, row := range []string{"owner", "person", "agent", "system", "stranger", configs.GuardTainted} {
		for _, class := range []string{"read", "write", "exec", "net", "send", "device", "memory"} {
			w.values[configs.GuardKey(row, class)] = configs.GuardAllow
		}
	}
	maps.Copy(w.values, p.rules)
	w.outside.violate = w.violate
	w.checks = newChecks(w)
	if b.disk != nil {
		b.disk(w.disk)
	}
	w.disk.Took = func(r *messages.LedgerExecute) { delete(w.checks.handed, r) }
	w.disk.Cut = func() {
		w.die(doPower)
		w.host.Crash(0)
	}
	w.table = w.rows()
	return w
}

func (w *world) violate(invariant, format string, args ...any) {
	if w.bad == nil {
		w.bad = &violation{invariant, fmt.Sprintf(format, args...)}
		w.rec.note("VIOLATED %s", w.bad.Error())
	}
}

// run runs the plan to its end and returns what was violated, or nil.
func (w *world) run() *violation {
	w.boot(start)
	for w.bad == nil {
		switch {
		case w.dying != "":
			w.reboot()
		case w.steps+w.host.Steps()-w.base > mostSteps:
			w.violate("progress", "no end after %d steps; %s", mostSteps, w.checks.open())
		default:
			if !w.turnOver() {
				return w.bad
			}
		}
	}
	return w.bad
}

// turnOver does one thing; false when the run is over.
func (w *world) turnOver() bool {
	w.proceed()
	if w.dying != "" || w.bad != nil {
		return true
	}
	w.act()
	if w.dying != "" || w.bad != nil {
		return true
	}
	if !w.host.Idle() {
		if w.rng.IntN(200) == 0 { // time passes while actors have things to do
			if at, ok := w.host.Next(); ok && at.Sub(w.host.Now()) < time.Second {
				w.host.Advance(at)
				return true
			}
		}
		w.host.Step()
		w.waited++
		w.checks.step()
		return true
	}
	at, ok := w.soonest()
	if ok && !w.resting(at) {
		w.host.Advance(at)
		w.checks.step()
		return true
	}
	return w.drained()
}

// resting tells that the run may be brought to its end: people and faults have had their time, or, later, nothing has been
// open for a while, so that what is still to come is of no consequence.
func (w *world) resting(next time.Time) bool {
	switch {
	case !w.up || w.stopping != nil || w.next < len(w.plan.actions):
		return false
	case !w.healed:
		return next.Sub(w.acted) > patienceEnd
	case w.disk.Open() > 0:
		w.quiet = time.Time{}
		return false
	case w.quiet.IsZero():
		w.quiet = w.host.Now()
	}
	return next.Sub(w.quiet) > pause
}

// soonest is when the next thing happens by itself.
func (w *world) soonest() (time.Time, bool) {
	at, ok := w.host.Next()
	if w.healed && w.up && w.stopping == nil && w.disk.Open() > 0 && w.host.Now().Sub(w.healAt) > calm {
		w.violate("progress", "%s after nothing came for %s; %s", w.checks.open(), calm, "")
		return at, false
	}
	if w.next < len(w.plan.actions) { // one whose time has come waits for steps, or for the node
		t := w.began.Add(w.plan.actions[w.next].at)
		if !t.After(w.host.Now()) {
			t = t.Add(slack)
		}
		if t.After(w.host.Now()) && (!ok || t.Before(at)) {
			at, ok = t, true
		}
	}
	for _, l := range w.later {
		if !ok || l.at.Before(at) {
			at, ok = l.at, true
		}
	}
	if !w.up && w.stopping == nil {
		if t := w.bootAt.Add(bootLimit + time.Millisecond); !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	return at, ok
}

// drained is called when nothing happens any more: first everything is mended, then the node is stopped in order and
// started again, so that what waited for a start is done; then all must have come to its end.
func (w *world) drained() bool {
	switch {
	case w.bad != nil:
		return false
	case w.next < len(w.plan.actions):
		return true // an action that waited for steps happens now
	case !w.healed:
		w.heal()
		return true
	case w.disk.Open() > 0:
		w.violate("progress", "nothing happens any more; %s", w.checks.open())
		return false
	case !w.last:
		w.last = true
		w.beginStop()
		return true
	}
	w.checks.final()
	return false
}

// heal mends what is broken.
func (w *world) heal() {
	w.rec.note("mended: nothing new comes")
	w.healed, w.healAt = true, w.host.Now()
	w.later = nil
	w.disk.Low, w.disk.CutIn = false, 0
	w.disk.FailSync = false
	for _, name := range sortedKeys(w.outside.down) {
		w.openChannel(name)
	}
	if w.disk.Broken() {
		w.die(doPower)
	}
	w.settleSoon()
}

// settleSoon has people decide what waits, as soon as the node is ready and again later: they may be asked anew.
func (w *world) settleSoon() {
	w.whenUp(func() {
		w.settle()
		if w.host.Now().Sub(w.healAt) < calm/2 && w.disk.Open() > 0 {
			w.after(10*time.Second, w.settleSoon)
		}
	})
}

func (w *world) openChannel(name string) {
	delete(w.outside.down, name)
	if w.host.Alive("desk") {
		w.host.Notify("desk", kit.Restarted{Who: kit.Path("channels")})
	}
}

// boot starts the node.
func (w *world) boot(now time.Time) {
	w.epoch++
	w.base = 0
	w.quiet = time.Time{}
	w.rec.note("boot %d", w.epoch)
	w.host = host.New(host.Options{
		Rand: w.rng, Now: now, Epoch: w.epoch, Kinds: w.kinds(), Wrap: w.bug.wrap,
		Observe: host.Observer{
			Stepped: w.checks.stepped, Published: w.checks.published, Answered: w.answered,
			Ready: func(path string) { w.ready[path] = true }, Restarted: w.restarted, Ended: w.ended,
			Panicked: func(path string, reason any, stack []byte) {
				w.violate("panic", "%s: %v\n%s", path, reason, stack)
			},
		},
	})
	w.ready, w.up, w.layer, w.bootAt, w.stopping = map[string]bool{}, false, -1, now, nil
	w.checks.booted()
	w.nextLayer()
}

func (w *world) nextLayer() {
	w.layer++
	found := false
	for _, r := range w.table {
		if r.layer == w.layer {
			found = true
			if err := w.host.Spawn(r.path, r.props()); err != nil {
				w.violate("boot", "%s: %s", r.path, err.GetMessage())
			}
		}
	}
	if !found {
		w.up = true
		w.rec.note("ready")
	}
}

// proceed goes on with a start, a stop, and what happens by itself.
func (w *world) proceed() {
	now := w.host.Now()
	for i := 0; i < len(w.later); i++ {
		if l := w.later[i]; !l.at.After(now) {
			w.later = slices.Delete(w.later, i, i+1)
			l.do()
			i--
		}
	}
	switch {
	case w.stopping != nil:
		w.proceedStop()
	case !w.up:
		for _, r := range w.table {
			if r.layer == w.layer && !w.ready[r.path] {
				if now.Sub(w.bootAt) > bootLimit {
					w.rec.note("the node was not ready in time")
					w.die(doCrash)
				}
				return
			}
		}
		w.nextLayer()
	}
}

// restarted tells those who require what a restarted actor provides.
func (w *world) restarted(path, failure string) {
	w.checks.restarted(path)
	for _, r := range w.table {
		if r.path != path {
			continue
		}
		for _, other := range w.table {
			if slices.Contains(other.requires, r.provides) {
				w.host.Notify(other.path, kit.Restarted{Who: kit.Path(path), Failure: failure})
			}
		}
	}
}

// ended is told of the end of an actor; a node without one of its own table is no node.
func (w *world) ended(path, failure string) {
	w.checks.ended(path)
	if failure == "" || w.stopping != nil {
		return
	}
	for _, r := range w.table {
		if r.path == path {
			w.rec.note("%s was given up: the process ends", path)
			w.die(doCrash)
		}
	}
}

// die ends the process after this step.
func (w *world) die(how verb) {
	if w.dying == "" || how == doPower {
		w.dying = how
	}
}

// reboot ends the process and starts it again a little later.
func (w *world) reboot() {
	how := w.dying
	w.dying = ""
	now := w.host.Now()
	w.steps += w.host.Steps()
	w.rec.note("the process ends: %s", how)
	if how == doRestart {
		w.host.Crash(0)
		w.checks.stoppedInOrder()
		w.disk.Close()
	} else {
		w.host.Crash(0.5)
		w.dying = "" // a torn write that was waited for
		if how == doPower || w.disk.Broken() {
			w.disk.PowerCut(w.rng)
		} else {
			w.disk.Reopen()
		}
		w.checks.crashed(now)
	}
	asks := w.asks
	w.asks = map[string]func(proto.Message){}
	w.boot(now.Add(time.Duration(200+w.rng.IntN(3000)) * time.Millisecond))
	for _, corr := range sortedKeys(asks) {
		asks[corr](nil)
	}
}

// beginStop stops the node in order.
func (w *world) beginStop() {
	if w.stopping != nil || !w.up {
		return
	}
	w.rec.note("the node is stopped in order")
	s := &stopping{since: w.host.Now(), layer: w.layer}
	w.stopping = s
	w.ask("agents", &messages.Drain{LimitMs: 2000}, func(proto.Message) { s.drained = true })
	w.later = append(w.later, later{w.host.Now().Add(2 * time.Second), func() { s.drained = true }},
		later{w.host.Now().Add(stopLimit + time.Second), func() {}})
}

func (w *world) proceedStop() {
	s := w.stopping
	if w.host.Now().Sub(s.since) > stopLimit {
		w.violate("stop", "the node does not stop within %s: %s", stopLimit, strings.Join(w.host.Paths(), " "))
		return
	}
	if !s.drained {
		return
	}
	for s.layer >= 0 {
		for _, r := range w.table {
			if r.layer == s.layer && !w.host.End(r.path) {
				return
			}
		}
		s.layer--
	}
	w.die(doRestart)
}

// ask sends a request in the name of somebody outside; then gets the answer, or nil when none will come.
func (w *world) ask(path string, m proto.Message, then func(proto.Message)) {
	w.number++
	corr := fmt.Sprintf("ask%05d", w.number)
	w.rec.ask(path, corr, m)
	w.asks[corr] = then
	if err := w.host.Ask(path, corr, m); err != nil {
		delete(w.asks, corr)
		then(err)
	}
}

func (w *world) answered(corr string, m proto.Message) {
	then := w.asks[corr]
	if then == nil {
		return
	}
	delete(w.asks, corr)
	w.rec.answer(corr, m)
	then(m)
}
