package kit

import "homeagent/messages"

// ends is who waits for an actor's end; it is made when the first one does. Guarded by Runtime.endsMu.
type ends struct {
	watchers map[*cell]*shell
	done     chan struct{}
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
	if err == nil && c.parent == sh.c && sh.c.kids[c.name] == c {
		c.watched = true
		return
	}
	if sh.watching == nil {
		sh.watching = make(map[*cell]bool)
	}
	if err == nil && c.watchBy(sh) {
		sh.watching[c] = true
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
	if c.gone.Load() {
		return false
	}
	if c.ends == nil {
		c.ends = &ends{}
	}
	if c.ends.watchers == nil {
		c.ends.watchers = make(map[*cell]*shell)
	}
	c.ends.watchers[sh.c] = sh
	return true
}

func (sh *shell) unwatch(who *messages.Address) {
	for c := range sh.watching {
		if c.path() == who.GetPath() {
			sh.leave(c)
		}
	}
	if c, err := sh.c.rt.find(who); err == nil && c.parent == sh.c {
		c.watched = false
	}
}

func (sh *shell) unwatchAll() {
	for c := range sh.watching {
		sh.leave(c)
	}
}

func (sh *shell) leave(c *cell) {
	delete(sh.watching, c)
	c.rt.endsMu.Lock()
	defer c.rt.endsMu.Unlock()
	if c.ends != nil && c.ends.watchers[sh.c] == sh {
		delete(c.ends.watchers, sh.c)
	}
}

// tellEnd frees the actor's name and tells those who wait that it has ended. All of it is one step to whoever watches.
func (rt *Runtime) tellEnd(c *cell) {
	rt.endsMu.Lock()
	defer rt.endsMu.Unlock()
	rt.remove(c)
	rt.fates.note(c.path(), c.lost)
	if c.ends == nil {
		return
	}
	e := Ended{Who: c.self, Failure: c.lost}
	for w, sh := range c.ends.watchers {
		w.Mailbox.PostUserMessage(&private{sh: sh, v: ended{c: c, e: e}})
	}
	if c.ends.done != nil {
		close(c.ends.done)
	}
	c.ends = nil
}

// done returns a channel that is closed when the actor has ended.
func (c *cell) done() <-chan struct{} {
	c.rt.endsMu.Lock()
	defer c.rt.endsMu.Unlock()
	if c.gone.Load() {
		over := make(chan struct{})
		close(over)
		return over
	}
	if c.ends == nil {
		c.ends = &ends{}
	}
	if c.ends.done == nil {
		c.ends.done = make(chan struct{})
	}
	return c.ends.done
}
