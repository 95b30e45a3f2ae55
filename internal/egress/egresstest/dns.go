// Package egresstest gives tests a world of names on loopback: a DNS server that answers from a table.
package egresstest

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Names is a DNS server. A name with several sets of addresses answers with the next set at each look-up, and with the
// last one from then on: that is how a name is rebound.
type Names struct {
	mu    sync.Mutex
	sets  map[string][][]netip.Addr
	conn  net.PacketConn
	ended chan struct{}
}

// New starts a server that ends with the test.
func New(t testing.TB) *Names {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &Names{sets: map[string][][]netip.Addr{}, conn: conn, ended: make(chan struct{})}
	go n.serve()
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		<-n.ended
	})
	return n
}

// Set gives a name a further set of addresses.
func (n *Names) Set(name string, addresses ...string) {
	set := make([]netip.Addr, len(addresses))
	for i, a := range addresses {
		set[i] = netip.MustParseAddr(a)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sets[name+"."] = append(n.sets[name+"."], set)
}

// Resolver asks this server and nobody else.
func (n *Names) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", n.conn.LocalAddr().String())
	}}
}

func (n *Names) serve() {
	defer close(n.ended)
	buf := make([]byte, 1500)
	for {
		size, from, err := n.conn.ReadFrom(buf)
		if err != nil {
			return // closed
		}
		if out, ok := n.answer(buf[:size]); ok {
			_, _ = n.conn.WriteTo(out, from) // who asks tries again
		}
	}
}

func (n *Names) answer(in []byte) ([]byte, bool) {
	var m dnsmessage.Message
	if m.Unpack(in) != nil || len(m.Questions) != 1 {
		return nil, false
	}
	q := m.Questions[0]
	m.Response, m.Authoritative, m.RecursionAvailable = true, true, true
	m.Additionals = nil
	n.mu.Lock()
	sets := n.sets[q.Name.String()]
	switch {
	case len(sets) == 0:
		m.RCode = dnsmessage.RCodeNameError
	default:
		for _, a := range sets[0] {
			m.Answers = append(m.Answers, resource(q, a)...)
		}
		// A and AAAA are two questions of one look-up.
		if len(sets) > 1 && q.Type == dnsmessage.TypeA {
			n.sets[q.Name.String()] = sets[1:]
		}
	}
	n.mu.Unlock()
	out, err := m.Pack()
	return out, err == nil
}

func resource(q dnsmessage.Question, a netip.Addr) []dnsmessage.Resource {
	h := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, Type: q.Type}
	switch {
	case q.Type == dnsmessage.TypeA && a.Is4():
		return []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AResource{A: a.As4()}}}
	case q.Type == dnsmessage.TypeAAAA && a.Is6():
		return []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}}}
	}
	return nil
}
