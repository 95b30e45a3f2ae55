package admin

import (
	"io"
	"net/http"
	"time"

	"homeagent/messages/api"
)

// backup is GET /api/v1/backup?with_key=: the node as one stream while it goes on. Whether it is whole is told by the
// stream itself, whose last bytes are a digest: an error in the middle ends the connection.
func (f *face) backup(w http.ResponseWriter, r *http.Request) {
	withKey, no := flag(r, "with_key")
	if v, ok := r.Context().Value(visitorKey{}).(*visitor); no == nil && withKey && (!ok || !v.local) {
		no = refused(403, "not_allowed", "The key of the secrets leaves the node only through its local socket.",
			"Run homed backup on the node's machine, or leave the key out.")
	}
	if no == nil && f.deps.Backup == nil {
		no = refused(404, api.CodeNotFound, "This node makes no backups.", "")
	}
	if no != nil {
		f.refuse(w, r, no)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	out := &patient{w: w, rc: http.NewResponseController(w)}
	if err := f.deps.Backup(r.Context(), out, withKey); err != nil {
		f.log().Error("backup failed", "request_id", requestID(r), "bytes", out.n, "error", err)
		if out.n > 0 {
			panic(http.ErrAbortHandler) // nobody may take what was sent for whole
		}
		f.refuse(w, r, refused(500, api.CodeInternal, "The backup could not be made.", "The log tells more, under the request id."))
		return
	}
	_ = out.rc.SetWriteDeadline(time.Time{})
}

// patient writes to a client that reads: one that stops must not hold a snapshot of the store for ever.
type patient struct {
	w  io.Writer
	rc *http.ResponseController
	n  int64
}

// Write implements io.Writer.
func (p *patient) Write(b []byte) (int, error) {
	// A writer that knows no deadlines (a recorder in a test) never blocks either.
	_ = p.rc.SetWriteDeadline(time.Now().Add(writeLimit))
	n, err := p.w.Write(b)
	p.n += int64(n)
	return n, err
}
