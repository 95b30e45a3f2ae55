package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Allow is what the owner lets through beside ordinary addresses: hosts by name, addresses and networks. The zero value
// and nil let nothing through. It is not changed after it was made.
type Allow struct {
	names    []allowedName
	networks []allowedNetwork
}

type allowedName struct {
	name string
	port uint16 // zero: any
}

type allowedNetwork struct {
	prefix netip.Prefix
	port   uint16 // zero: any
}

// ParseAllow reads entries such as nas.local, nas.local:5000, 192.168.1.10, 192.168.1.10:8080, [fd12::1]:8080 and
// 192.168.1.0/24. Metadata services, multicast and the like are not let through by any of them.
func ParseAllow(entries []string) (*Allow, error) {
	a := &Allow{}
	for _, e := range entries {
		if err := a.add(strings.TrimSpace(e)); err != nil {
			return nil, fmt.Errorf("%q is %w", e, err)
		}
	}
	return a, nil
}

var errAllow = errors.New("no host, address or network such as nas.local, 192.168.1.10:8080 or 192.168.1.0/24")

func (a *Allow) add(entry string) error {
	if strings.Contains(entry, "/") {
		p, err := netip.ParsePrefix(entry)
		if err != nil || p.Addr().Zone() != "" {
			return errAllow
		}
		a.networks = append(a.networks, allowedNetwork{prefix: p.Masked()})
		return nil
	}
	if ip, err := netip.ParseAddr(entry); err == nil && ip.Zone() == "" {
		a.networks = append(a.networks, single(ip, 0))
		return nil
	}
	host, port, err := cutPort(entry)
	if err != nil {
		return errAllow
	}
	name, ip, fault := parseHost(host)
	switch {
	case fault != nil:
		return errAllow
	case ip.IsValid():
		a.networks = append(a.networks, single(ip, port))
	default:
		a.names = append(a.names, allowedName{name, port})
	}
	return nil
}

func single(ip netip.Addr, port uint16) allowedNetwork {
	ip = ip.Unmap()
	return allowedNetwork{netip.PrefixFrom(ip, ip.BitLen()), port}
}

func cutPort(entry string) (host string, port uint16, err error) {
	at := strings.LastIndexByte(entry, ':')
	if at < 0 || strings.HasSuffix(entry, "]") {
		return entry, 0, nil
	}
	n, err := strconv.ParseUint(entry[at+1:], 10, 16)
	if err != nil || n == 0 {
		return "", 0, errAllow
	}
	return entry[:at], uint16(n), nil
}

// check decides about one address that the host resolved to, nil lets it through.
func (a *Allow) check(host string, to netip.AddrPort) *Error {
	n := lookup(to.Addr())
	if n == nil || !n.never && a.lets(host, to) {
		return nil
	}
	return &Error{
		Code: CodeDenied, Text: fmt.Sprintf("%s is not fetched from: it lies in %s.", host, n.what),
		Hint: hintDenied(n),
	}
}

func hintDenied(n *network) string {
	if n.never {
		return "Addresses of this kind are never fetched from."
	}
	return "The owner of the node can allow it with the key core.egress.allow."
}

func (a *Allow) lets(host string, to netip.AddrPort) bool {
	if a == nil {
		return false
	}
	for _, n := range a.names {
		if n.name == host && (n.port == 0 || n.port == to.Port()) {
			return true
		}
	}
	ip := inner(to.Addr())
	for _, n := range a.networks {
		if n.prefix.Contains(ip) && (n.port == 0 || n.port == to.Port()) {
			return true
		}
	}
	return false
}
