package admin

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"homeagent/configs/paths"
)

// minToken is the least length of a token that a person put there, in bytes.
const minToken = 32

// DoorOptions say where a node can be reached.
type DoorOptions struct {
	// Listen is the TCP address, such as "127.0.0.1:8765"; port 0 takes a free one.
	Listen string
	// Layout is the data folder, which exists and is locked.
	Layout paths.Layout
	// Hosts are further values that the Host header may have, with the port where it is not the default one, such as
	// "home.example:8765".
	Hosts []string
	// Origins are web pages besides the node's own that may call it, such as "https://home.example". Their scripts need
	// the credential all the same.
	Origins []string
	// Log gets what is unusual; nil discards it.
	Log *slog.Logger
}

// Door holds what outlives a restart of the actor: the listeners and the token. It is opened before the tree, so that
// an address in use is told at once, and closed after it.
type Door struct {
	tcp    *net.TCPListener
	unix   *net.UnixListener
	layout paths.Layout
	socket string
	token  string
	hosts  []string
	// origins are those of other pages that may call.
	origins []string
}

// OpenDoor opens the listeners and reads or makes the token. What an earlier process left in the run folder is
// replaced: the lock on the data folder says that it is gone.
func OpenDoor(o DoorOptions) (*Door, error) {
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	d := &Door{layout: o.Layout, hosts: o.Hosts, origins: o.Origins}
	var err error
	if d.token, err = readToken(o.Layout.Token(), log); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err // the rest says the address again
		}
		return nil, fmt.Errorf("listen on %s: %w; choose another HOST:PORT with --listen", o.Listen, err)
	}
	d.tcp = l.(*net.TCPListener)
	if err := d.openSocket(log); err != nil {
		return nil, errors.Join(err, d.tcp.Close())
	}
	return d, nil
}

// openSocket listens under a name of its own first: between bind and chmod a socket has the mode of the umask.
func (d *Door) openSocket(log *slog.Logger) error {
	if !peersKnown {
		log.Warn("no local socket", "reason", ErrNoPeer)
		return nil
	}
	if err := d.layout.CheckSocket(); err != nil {
		return err
	}
	path := d.layout.Socket()
	tmp := strings.TrimSuffix(path, "sock") + "new" // no longer than the path itself, which is known to fit
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrSocket, err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: tmp, Net: "unix"})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSocket, err)
	}
	l.SetUnlinkOnClose(false) // it would remove the name it was bound to, not the one it has
	if err = os.Chmod(tmp, 0o600); err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSocket, errors.Join(err, l.Close(), os.Remove(tmp)))
	}
	d.unix, d.socket = l, path
	return nil
}

// readToken reads the token, or makes one of 32 random bytes.
func readToken(path string, log *slog.Logger) (string, error) {
	// Reading a pipe would hold the start for ever.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%w: %s is no plain file; remove it to get a new one", ErrToken, path)
	}
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return makeToken(path)
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrToken, err)
	}
	token := strings.TrimSpace(string(b))
	if len(token) < minToken || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("%w: %s must hold one word of at least %d characters; remove it to get a new one",
			ErrToken, path, minToken)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 && peersKnown {
		log.Warn("token file was open to others", "path", path, "mode", info.Mode().Perm().String())
		if err := os.Chmod(path, 0o600); err != nil {
			return "", fmt.Errorf("%w: %w", ErrToken, err)
		}
	}
	return token, nil
}

func makeToken(path string) (string, error) {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails: the runtime ends the process instead
	token := base64.RawURLEncoding.EncodeToString(raw[:])
	if err := writeWhole(path, []byte(token+"\n")); err != nil {
		return "", fmt.Errorf("%w: %w", ErrToken, err)
	}
	return token, nil
}

// writeWhole writes a private file so that a reader sees the whole of it or none.
func writeWhole(path string, b []byte) error {
	tmp := path + ".new"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// HTTP is the address that the node listens on, such as "127.0.0.1:8765".
func (d *Door) HTTP() string { return d.tcp.Addr().String() }

// Socket is the path of the local socket; empty where there is none.
func (d *Door) Socket() string { return d.socket }

// Token is the secret of TCP clients.
func (d *Door) Token() string { return d.token }

// Announce writes run/homed.json, by which clients find the node.
func (d *Door) Announce(s paths.State) error {
	s.HTTP, s.Socket = d.HTTP(), d.socket
	return d.layout.WriteState(s)
}

// Close closes the listeners and takes the socket and run/homed.json away; the token stays.
func (d *Door) Close() error {
	err := errors.Join(d.tcp.Close(), d.layout.RemoveState(os.Getpid()))
	if d.unix != nil {
		err = errors.Join(err, d.unix.Close(), gone(d.socket))
	}
	return err
}

func gone(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// deadlined is what both kinds of listener have.
type deadlined interface {
	net.Listener
	SetDeadline(t time.Time) error
}

// borrowed is a listener for one incarnation: closing it wakes its Accept and leaves the socket open for the next one.
type borrowed struct {
	deadlined
	once   sync.Once
	closed chan struct{}
}

func borrow(l deadlined) (*borrowed, error) {
	if err := l.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	return &borrowed{deadlined: l, closed: make(chan struct{})}, nil
}

func (b *borrowed) Accept() (net.Conn, error) {
	c, err := b.deadlined.Accept()
	select {
	case <-b.closed:
		if err == nil { // accepted in the moment of closing: this incarnation will not serve it any more
			err = c.Close()
		}
		return nil, errors.Join(net.ErrClosed, err)
	default:
		return c, err
	}
}

// Close wakes Accept; a second call does nothing.
func (b *borrowed) Close() (err error) {
	b.once.Do(func() {
		close(b.closed)
		err = b.SetDeadline(time.Unix(1, 0))
	})
	return err
}
