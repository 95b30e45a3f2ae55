package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"homeagent/messages/api"
)

// writeLimit is how long one write to a client may take before the connection is given up.
const writeLimit = 15 * time.Second

// frames writes server-sent events. One goroutine owns it, so frames never mix.
type frames struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	buf  bytes.Buffer
	dead bool
}

// newFrames begins the answer.
func newFrames(w http.ResponseWriter) *frames {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return &frames{w: w, rc: http.NewResponseController(w)}
}

// add puts a frame into the buffer. id and name may be empty; v is one line of JSON.
func (fr *frames) add(id, name string, v any) {
	b, err := json.Marshal(v)
	if err != nil { // a value of ours always encodes; a float that has no JSON would not
		b = []byte(`{}`)
	}
	if id != "" {
		fr.buf.WriteString("id: " + id + "\n")
	}
	if name != "" {
		fr.buf.WriteString("event: " + name + "\n")
	}
	fr.buf.WriteString("data: ")
	fr.buf.Write(b)
	fr.buf.WriteString("\n\n")
}

// raw puts text into the buffer as it is.
func (fr *frames) raw(s string) { fr.buf.WriteString(s) }

// flush writes what is in the buffer and reports whether the client still reads.
func (fr *frames) flush() bool {
	if fr.dead || fr.buf.Len() == 0 {
		return !fr.dead
	}
	// A writer that knows no deadlines (a recorder in a test) never blocks either.
	_ = fr.rc.SetWriteDeadline(time.Now().Add(writeLimit))
	_, err := fr.w.Write(fr.buf.Bytes())
	if err == nil {
		err = fr.rc.Flush()
	}
	if fr.buf.Cap() > 1<<20 { // after a large event, the next ones are small again
		fr.buf = bytes.Buffer{}
	}
	fr.buf.Reset()
	fr.dead = err != nil
	return !fr.dead
}

// end takes the deadline off the connection, which may serve further requests.
func (fr *frames) end() { _ = fr.rc.SetWriteDeadline(time.Time{}) }

// position reads "<epoch>-<sequence>".
func position(s string) (epoch, sequence uint64, ok bool) {
	a, b, found := strings.Cut(s, "-")
	if !found {
		return 0, 0, false
	}
	epoch, err := strconv.ParseUint(a, 10, 64)
	if err != nil || epoch == 0 {
		return 0, 0, false
	}
	sequence, err = strconv.ParseUint(b, 10, 64)
	return epoch, sequence, err == nil
}

// events is GET /api/v1/events.
func (f *face) events(w http.ResponseWriter, r *http.Request) {
	ask, no := streamOf(r)
	mine := f.ownOf(asker(r))
	if no == nil && mine != nil {
		no = mine.narrow(r.Context(), &ask)
	}
	if no == nil && f.draining.Load() {
		no = drainingRefusal()
	}
	var sub *subscription
	if no == nil {
		sub, no = f.subscribe(ask)
	}
	if no != nil {
		f.refuse(w, r, no)
		return
	}
	defer sub.close()
	f.stream(w, r, sub, mine)
}

// streamOf reads the parameters of a stream. Last-Event-ID, which a browser sends by itself, goes before after.
func streamOf(r *http.Request) (opened, *refusal) {
	q := r.URL.Query()
	types, no := eventTypes(q.Get("types"))
	if no != nil {
		return opened{}, no
	}
	ask := opened{Types: types, Task: q.Get("task")}
	after := r.Header.Get("Last-Event-ID")
	if after == "" {
		after = q.Get("after")
	}
	if after == "" {
		return ask, nil
	}
	var ok bool
	if ask.AfterEpoch, ask.AfterSequence, ok = position(after); !ok {
		return opened{}, malformed("This is no place in an event stream.",
			"Use the id of an event, <epoch>-<sequence>, or leave it out.").with("after", after)
	}
	return ask, nil
}

// stream writes events until the client goes, does not keep up, its credential ends, or the node stops.
func (f *face) stream(w http.ResponseWriter, r *http.Request, sub *subscription, mine *own) {
	beat := time.NewTicker(f.deps.Heartbeat)
	defer beat.Stop()
	var out *frames
	defer func() {
		if out != nil {
			out.end()
		}
	}()
	stop := f.stopping()
	for {
		select {
		case <-sub.out.wake:
		case <-beat.C:
			if out == nil {
				f.refuse(w, r, refused(504, api.CodeTimeout, "The event stream did not begin in time.", "Try again."))
				return
			}
			out.raw(": heartbeat\n\n")
			if !out.flush() {
				return
			}
			continue
		case <-r.Context().Done():
			return
		case <-stop:
			if out == nil {
				f.refuse(w, r, drainingRefusal())
			}
			return
		}
		ps, slow, err := sub.out.take()
		if err != nil {
			if out == nil {
				f.refuse(w, r, refusalOf(err))
			}
			return
		}
		if out == nil && len(ps) > 0 {
			out = newFrames(w)
			out.raw("retry: 1000\n")
			out.add("", api.FrameReady, api.Ready{Epoch: ps[0].batch.GetEpoch()})
		}
		if !write(r.Context(), out, ps, slow, mine) || slow {
			return
		}
	}
}

// write writes portions and, for a slow client, the word that events were lost. With mine, only the events that are.
func write(ctx context.Context, out *frames, ps []portion, slow bool, mine *own) bool {
	if out == nil {
		return !slow
	}
	for _, p := range ps {
		epoch := p.batch.GetEpoch()
		if p.sync {
			out.add("", api.FrameSync, api.Sync{Epoch: epoch, Reason: "gone"})
		}
		for _, e := range p.batch.GetEvents() {
			if mine != nil && !mine.has(ctx, e.GetTaskId()) {
				continue
			}
			id := strconv.FormatUint(epoch, 10) + "-" + strconv.FormatUint(e.GetSequence(), 10)
			shown := event(epoch, e)
			if mine != nil {
				shown = mine.view(shown)
			}
			out.add(id, eventType(e.GetType()), shown)
		}
	}
	if slow {
		out.add("", api.FrameSync, api.Sync{Reason: "slow"})
	}
	return out.flush()
}
