package admin

import "errors"

var (
	// ErrToken says that the token file can not be used.
	ErrToken = errors.New("admin token is not usable")
	// ErrSocket says that the local socket could not be made.
	ErrSocket = errors.New("local socket is not usable")
	// ErrNoPeer says that this platform can not tell who is at the other end of a socket.
	ErrNoPeer = errors.New("no peer credentials on this platform")
)
