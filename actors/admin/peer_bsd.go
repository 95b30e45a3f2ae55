//go:build darwin || freebsd

package admin

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUser is the user id of the process at the other end, as the kernel noted it when that process connected.
func peerUser(c *net.UnixConn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Xucred
	var got error
	if err := raw.Control(func(fd uintptr) {
		cred, got = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if got != nil {
		return 0, got
	}
	return int(cred.Uid), nil
}

const peersKnown = true
