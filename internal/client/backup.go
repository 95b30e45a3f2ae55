package client

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Backup copies a backup of the running node to w and returns its bytes. It is whole only if whoever reads it finds its
// digest right: a stream that was cut may end without an error here. With key, the key of the secrets is in it, which
// works only over the local socket.
func (c *Client) Backup(ctx context.Context, w io.Writer, key bool) (int64, error) {
	flag := ""
	if key {
		flag = "true"
	}
	q, err := c.request(ctx, "GET", query(root+"/backup", "with_key", flag), nil)
	if err != nil {
		return 0, err
	}
	res, err := c.http.Do(q)
	if err != nil {
		return 0, c.failed(ctx, err)
	}
	defer func() { _ = res.Body.Close() }() // as in do
	if res.StatusCode >= 300 {
		b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		if err != nil {
			return 0, c.failed(ctx, err)
		}
		return 0, refusalOf(res.StatusCode, b)
	}
	own := &failing{w: w}
	n, err := io.Copy(own, res.Body)
	switch {
	case err == nil:
		return n, nil
	case own.err != nil:
		return n, own.err
	case ctx.Err() != nil:
		return n, ctx.Err()
	}
	return n, fmt.Errorf("the backup was cut after %d bytes: %w", n, errors.Join(ErrAnswer, err))
}

// failing tells an error of the writer from one of the stream.
type failing struct {
	w   io.Writer
	err error
}

func (f *failing) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	f.err = err
	return n, err
}
