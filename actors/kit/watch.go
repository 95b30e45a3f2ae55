package kit

import "homeagent/messages"

// ends is who waits for an actor's end; Runtime.ends has one from when the first does.
type ends struct {
	watchers map[*cell]*shell
	done     chan struct{}
}

// endsOf is called under endsMu.
func (rt *Runtime) endsOf(c *cell) *ends {
	e := rt.ends[c]
	if e == nil {
		e = &ends{watchers: make(map[*cell]*shell)}
		rt.ends[c] = e
	}
	return e
}

// fates remembers for a while why actors were given up, for those who begin to watch too late.
type fates struct {
	why   map[string]string
	order []string
}

// maxFates bounds the memory of fates.
const maxFates = 256

func (f *fates) note(path, why string) {
	delete(f.why, path)
	if why == "" {
		return
	}
	if f.why == nil {
		f.why = make(map[string]string)
	}
	f.why[path] = why
	f.order = append(f.order, path)
	if len(f.order) > maxFates {
		delete(f.why, f.order[0])
		f.order = f.order[1:]
	}
}

// watch performs Watch. A child is watched through its parent's own book.
func (sh *shell) watch(who *messages.Address) {
	c, err := sh.c.rt.find(who)
	if err == nil && c.parent == sh.c {
		c.watched = true
		return
	}
	h := sh.hold()
	if h.watching == nil {
		h.watching = make(map[*cell]bool)
	}
	if err == nil && c.watchBy(sh) {
		h.watching[c] = true
		return
	}
	sh.c.rt.endsMu.Lock()
	why := sh.c.rt.fates.why[who.GetPath()]
	sh.c.rt.endsMu.Unlock()
	sh.Post(late{Ended{Who: who, Failure: why}})
}

// late is the Ended of an actor that was gone before it was watched.
type late struct{ e Ended }

// ended is the Ended of a watched actor.
type ended struct {
	c *cell
	e Ended
}

// watchBy enters a watcher; it reports false when the actor has ended.
func (c *cell) watchBy(sh *shell) bool {
	c.rt.endsMu.Lock()
	defer c.rt.endsMu.Unlock()
	if c.is(gone) {
		return false
	}
	c.rt.endsOf(c).watchers[sh.c] = sh
	return true
}

func (sh *shell) unwatch(who *messages.Address) {
	for c := range sh.held().watching {
		if c.path() == who.GetPath() {
			sh.leave(c)
		}
	}
	if c := sh.c.rt.table.get(who.GetPath()); c != nil && c.parent == sh.c {
		c.watched = false
	}
}

func (sh *shell) unwatchAll() {
	for c := range sh.held().watching {
		sh.leave(c)
	}
}

func (sh *shell) leave(c *cell) {
	delete(sh.held().watching, c)
	c.rt.endsMu.Lock()
	defer c.rt.endsMu.Unlock()
	if e := c.rt.ends[c]; e != nil && e.watchers[sh.c] == sh {
		delete(e.watchers, sh.c)
	}
}

// tellEnd tells those who watch that the actor has ended; to them all of it is one step.
func (rt *Runtime) tellEnd(c *cell) {
	rt.endsMu.Lock()
	defer rt.endsMu.Unlock()
	c.set(gone)
	rt.fates.note(c.path(), c.lost())
	e := rt.ends[c]
	if e == nil {
		return
	}
	v := ended{c: c, e: Ended{Who: c.self, Failure: c.lost(), ByPerson: c.is(byPerson)}}
	for w, sh := range e.watchers {
		w.Mailbox.PostUserMessage(&private{sh: sh, v: v})
	}
	clear(e.watchers)
}

// forget frees the name of an actor that has ended, once its parent knows, and lets go of those who wait for that.
func (rt *Runtime) forget(c *cell) {
	rt.endsMu.Lock()
	defer rt.endsMu.Unlock()
	rt.table.remove(c)
	if e := rt.ends[c]; e != nil && e.done != nil {
		close(e.done)
	}
	delete(rt.ends, c)
}

// done returns a channel that is closed when the actor has ended and its name is free.
func (c *cell) done() <-chan struct{} {
	c.rt.endsMu.Lock()
	defer c.rt.endsMu.Unlock()
	if c.rt.table.get(c.path()) != c {
		over := make(chan struct{})
		close(over)
		return over
	}
	e := c.rt.endsOf(c)
	if e.done == nil {
		e.done = make(chan struct{})
	}
	return e.done
}
