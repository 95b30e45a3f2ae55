//go:build !linux && !darwin && !freebsd

package admin

import "net"

func peerUser(*net.UnixConn) (int, error) { return 0, ErrNoPeer }

// peersKnown says whether a local socket can be guarded here; without it there is none, and clients on the same machine
// use TCP with the token.
const peersKnown = false
