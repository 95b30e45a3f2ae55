package providertest

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"
)

// maxAwait caps how long a request for an event is held.
const maxAwait = time.Minute

// control serves what a test in another process needs:
//
//	GET  /_control/requests            the recorded requests
//	GET  /_control/events              all events
//	GET  /_control/await?kind=&n=      waits for the n-th event of a kind
//	POST /_control/open?gate=          opens a gate
//	POST /_control/shut?gate=          closes it
//	POST /_control/script              replaces the script
func (v *Vendor) control(mux *http.ServeMux) {
	mux.HandleFunc("GET /_control/requests", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, v.Requests()) })
	mux.HandleFunc("GET /_control/events", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, v.Events()) })
	mux.HandleFunc("GET /_control/await", v.await)
	mux.HandleFunc("POST /_control/open", func(w http.ResponseWriter, r *http.Request) {
		v.Open(r.FormValue("gate"))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /_control/shut", func(w http.ResponseWriter, r *http.Request) {
		v.Shut(r.FormValue("gate"))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /_control/script", func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
		if err == nil {
			var s Script
			if s, err = ParseScript(b); err == nil {
				v.Load(s)
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		http.Error(w, err.Error(), http.StatusBadRequest)
	})
}

func (v *Vendor) await(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.FormValue("n"))
	if err != nil || n < 1 {
		n = 1
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxAwait)
	defer cancel()
	e, err := v.Await(ctx, r.FormValue("kind"), n)
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestTimeout)
		return
	}
	reply(w, http.StatusOK, e)
}
