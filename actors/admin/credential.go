package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"homeagent/messages"
	"homeagent/messages/api"
)

// admitted is a request whose asker is known.
type admitted struct {
	who *messages.Principal
	// ctx ends with the credential.
	ctx context.Context
	// end is called when the request is done.
	end func()
}

// admit finds out who asks. At the socket it is the owner, unless a token says that it is somebody else.
func (f *face) admit(v *visitor, r *http.Request) (admitted, *refusal) {
	if no := f.fits(v, r); no != nil {
		return admitted{}, no
	}
	in := admitted{ctx: r.Context(), end: func() {}}
	if slices.Contains(open, r.URL.Path) {
		return in, nil
	}
	if v.local && !v.allowed() {
		return in, refused(403, api.CodePeer, "Only the user of this node may use its socket.",
			"Run the client as that user, or use TCP with the token.")
	}
	header := r.Header.Get("Authorization")
	if key := r.Header.Get("X-Api-Key"); header == "" && key != "" && strings.HasPrefix(r.URL.Path, "/v1/") {
		header = "Bearer " + key // as clients of /v1/messages write it
	}
	scheme, token, _ := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	switch {
	case header == "" && v.local, strings.EqualFold(scheme, "Bearer") && f.isAdmin(token):
		in.who = owner()
		return in, nil
	case strings.EqualFold(scheme, "Bearer") && token != "":
		return f.ofToken(r.Context(), token)
	}
	return in, unauthorized()
}

func unauthorized() *refusal {
	return refused(401, api.CodeUnauthorized, "The request has no valid credential.",
		"Send Authorization: Bearer with the token of run/admin.token in the data folder, or with a named token (`waiter tokens`).")
}

// isAdmin compares in constant time; hashes, so that the length does not show either.
func (f *face) isAdmin(token string) bool {
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(f.deps.Door.Token()))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// ofToken admits the holder of a named token. The request is in the book before the token is looked up: a token that is
// removed in between either is not found, or ends the request.
func (f *face) ofToken(ctx context.Context, text string) (admitted, *refusal) {
	if f.deps.Tokens == nil {
		return admitted{}, unauthorized()
	}
	digest := sha256.Sum256([]byte(text))
	ctx, cancel := context.WithCancel(ctx)
	out := f.holders.enter(digest, cancel)
	in := admitted{ctx: ctx, end: func() { out(); cancel() }}
	t, err := f.deps.Tokens(digest)
	switch {
	case err != nil:
		in.end()
		return admitted{}, refused(503, api.CodeUnavailable, "The token could not be looked up.", "Try again.").caused(err)
	case t == nil || t.GetExpiresUs() != 0 && t.GetExpiresUs() <= time.Now().UnixMicro():
		in.end()
		return admitted{}, unauthorized()
	}
	in.who = t.GetPrincipal()
	if us := t.GetExpiresUs(); us != 0 {
		timed, stop := context.WithDeadline(ctx, time.UnixMicro(us))
		in.ctx, in.end = timed, func() { stop(); out(); cancel() }
	}
	return in, nil
}

// holders knows the requests under way of each token, so that they end with it.
type holders struct {
	mu   sync.Mutex
	last uint64
	of   map[[sha256.Size]byte]map[uint64]context.CancelFunc
}

// enter notes a request; the function that it returns takes it out again.
func (h *holders) enter(digest [sha256.Size]byte, cancel context.CancelFunc) (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = make(map[[sha256.Size]byte]map[uint64]context.CancelFunc)
	}
	if h.of[digest] == nil {
		h.of[digest] = make(map[uint64]context.CancelFunc)
	}
	h.last++
	id := h.last
	h.of[digest][id] = cancel
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if delete(h.of[digest], id); len(h.of[digest]) == 0 {
			delete(h.of, digest)
		}
	}
}

// end ends the requests of a token that works no more.
func (h *holders) end(digest []byte) error {
	if len(digest) != sha256.Size {
		return errors.New("the removed token has no hash")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, cancel := range h.of[[sha256.Size]byte(digest)] {
		cancel()
	}
	return nil
}

// with puts who asks into a request.
func (in admitted) with(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(in.ctx, askerKey{}, in.who))
}
