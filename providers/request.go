package providers

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// request makes the HTTP request of a call.
func (r *run) request(ctx context.Context, info Info, prep *Prepared) (*http.Request, error) {
	target, err := join(prep.Base, prep.Endpoint)
	if err != nil {
		return nil, err
	}
	hr, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(prep.Body))
	if err != nil {
		return nil, err
	}
	hr.Header.Set("Content-Type", "application/json")
	hr.Header.Set("User-Agent", r.c.o.Agent)
	place := r.key
	creds, sign := Credentials{}, false
	if info.Auth.Kind == AuthAWS {
		if creds, sign = ParseCredentials(r.key); sign {
			place = "" // the key signs, it is not sent
		}
	}
	setHeaders(hr.Header, prep.Headers, place)
	setHeaders(hr.Header, r.src.Headers, place)
	if sign {
		err = Sign(ctx, hr, prep.Body, creds, info.Auth.Service, prep.Region, time.Now())
	}
	return hr, err
}

// setHeaders sets headers, with the key where its place is; without a key such
// a header is left out.
func setHeaders(h http.Header, set map[string]string, key string) {
	for name, value := range set {
		if strings.Contains(value, KeyPlace) {
			if key == "" {
				continue
			}
			value = strings.ReplaceAll(value, KeyPlace, key)
		}
		h.Set(name, value)
	}
}

// unpacked gives the body of a response without its compression, where the
// transport has not undone it already: servers compress unasked, too.
func unpacked(resp *http.Response) (io.Reader, error) {
	switch enc := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))); enc {
	case "", "identity":
		return resp.Body, nil
	case "gzip", "x-gzip":
		return gzip.NewReader(resp.Body)
	default:
		return nil, fmt.Errorf("the body is compressed as %.40q, which was not asked for", enc)
	}
}

// Bounds of a request that an adapter makes beside its call.
const (
	fetchTime = 30 * time.Second
	maxFetch  = 1 << 20
	// All of them in one call.
	fetchTotal = time.Minute
	maxFetches = 16
)

// fetch implements Fetch: to the source's own origin and nowhere else.
func (r *run) fetch(ctx context.Context, target string, headers map[string]string, body []byte) (*Fetched, error) {
	base := r.src.BaseURL
	if base == "" {
		a, err := r.adapter()
		if err != nil {
			return nil, err
		}
		base = a.Info().BaseURL
	}
	own, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("%w: base_url: not a URL", ErrSource)
	}
	u, err := own.Parse(target)
	if err != nil || u.Scheme != own.Scheme || u.Host != own.Host || u.User != nil {
		return nil, fmt.Errorf("%w: an adapter may ask only the source's own server, %s://%s", ErrRequest, own.Scheme, own.Host)
	}
	if r.fetched++; r.fetched > maxFetches || r.fetching >= fetchTotal {
		return nil, fmt.Errorf("%w: an adapter may make %d requests of its own in %v for one call", ErrRequest, maxFetches, fetchTotal)
	}
	start := time.Now()
	defer func() { r.fetching += time.Since(start) }()
	ctx, cancel := context.WithTimeout(ctx, min(fetchTime, fetchTotal-r.fetching))
	defer cancel()
	method, in := http.MethodGet, io.Reader(nil)
	if body != nil {
		method, in = http.MethodPost, bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), in)
	if err != nil {
		return nil, bare(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", r.c.o.Agent)
	setHeaders(req.Header, headers, r.key)
	resp, err := r.c.http.Do(req)
	if err != nil {
		_, text := kindOfTransport(ctx, err)
		return nil, fmt.Errorf("%s: %w", text, bare(err))
	}
	defer resp.Body.Close()
	plain, err := unpacked(resp)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(plain, maxFetch+1))
	if err != nil {
		return nil, bare(err)
	}
	if len(text) > maxFetch {
		return nil, fmt.Errorf("%w: the answer is larger than %d bytes", ErrRequest, maxFetch)
	}
	return &Fetched{Status: resp.StatusCode, Headers: lower(resp.Header), Body: text}, nil
}

func lower(h http.Header) map[string]string {
	out := make(map[string]string, len(h))
	for name := range h {
		out[strings.ToLower(name)] = h.Get(name)
	}
	return out
}
