package egress

import "net/netip"

// network is one line of the special-use table.
type network struct {
	prefix netip.Prefix
	what   string
	// never: not even the owner's word lets it through.
	never bool
}

func line(prefix, what string) network { return network{netip.MustParsePrefix(prefix), what, false} }

func neverLine(prefix, what string) network {
	return network{netip.MustParsePrefix(prefix), what, true}
}

func oneAddress(address, what string) network {
	a := netip.MustParseAddr(address)
	return network{netip.PrefixFrom(a, a.BitLen()), what, true}
}

// special is what is not fetched from, the first line that holds an address counts. It follows the special-purpose
// registries of IANA; metadata services stand first, because they lie inside of larger networks.
var special = []network{
	oneAddress("169.254.169.254", "a metadata service"),
	oneAddress("169.254.169.253", "a metadata service"),
	oneAddress("169.254.169.123", "a metadata service"),
	oneAddress("169.254.170.2", "a metadata service"),
	oneAddress("169.254.170.23", "a metadata service"),
	oneAddress("100.100.100.200", "a metadata service"),
	oneAddress("192.0.0.192", "a metadata service"),
	oneAddress("168.63.129.16", "a metadata service"),
	oneAddress("fd00:ec2::254", "a metadata service"),
	oneAddress("fd00:ec2::23", "a metadata service"),
	oneAddress("fd20:ce::254", "a metadata service"),
	oneAddress("fe80::a9fe:a9fe", "a metadata service"),

	neverLine("0.0.0.0/8", "this network"),
	line("10.0.0.0/8", "a private network"),
	line("100.64.0.0/10", "a carrier's shared network"),
	line("127.0.0.0/8", "this machine"),
	neverLine("169.254.0.0/16", "a link-local network"),
	line("172.16.0.0/12", "a private network"),
	neverLine("192.0.0.0/24", "a protocol network"),
	neverLine("192.0.2.0/24", "a documentation network"),
	neverLine("192.31.196.0/24", "an anycast network"),
	neverLine("192.52.193.0/24", "an anycast network"),
	neverLine("192.88.99.0/24", "a relay network"),
	line("192.168.0.0/16", "a private network"),
	neverLine("192.175.48.0/24", "an anycast network"),
	line("198.18.0.0/15", "a benchmarking network"),
	neverLine("198.51.100.0/24", "a documentation network"),
	neverLine("203.0.113.0/24", "a documentation network"),
	neverLine("224.0.0.0/4", "a multicast network"),
	neverLine("240.0.0.0/4", "a reserved network"),

	neverLine("::/128", "this network"),
	line("::1/128", "this machine"),
	neverLine("::/96", "a compatible address"),
	neverLine("64:ff9b:1::/48", "a local translation network"),
	neverLine("100::/64", "a discard network"),
	neverLine("100:0:0:1::/64", "a dummy network"),
	neverLine("2001::/23", "a protocol network"), // Teredo, benchmarking, ORCHID
	neverLine("2001:db8::/32", "a documentation network"),
	neverLine("2002::/16", "a 6to4 network"),
	neverLine("2620:4f:8000::/48", "an anycast network"),
	neverLine("3fff::/20", "a documentation network"),
	neverLine("5f00::/16", "a segment-routing network"),
	line("fc00::/7", "a private network"),
	neverLine("fe80::/10", "a link-local network"),
	neverLine("fec0::/10", "a site-local network"),
	neverLine("ff00::/8", "a multicast network"),
}

var (
	global     = netip.MustParsePrefix("2000::/3")
	translated = netip.MustParsePrefix("64:ff9b::/96")
)

// inner returns the address that counts: that of a mapped or translated one lies inside.
func inner(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if translated.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// isatap returns the address inside of an interface identifier of automatic tunnels.
func isatap(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return netip.Addr{}, false
	}
	b := a.As16()
	if b[8]&^0x02 != 0 || b[9] != 0 || b[10] != 0x5e || b[11] != 0xfe {
		return netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte(b[12:])), true
}

// lookup says which special network an address lies in; nil means that it is an ordinary one.
func lookup(a netip.Addr) *network {
	a = inner(a)
	for i := range special {
		if special[i].prefix.Contains(a) {
			return &special[i]
		}
	}
	if in, ok := isatap(a); ok {
		if n := lookup(in); n != nil {
			return n
		}
	}
	if a.Is6() && !global.Contains(a) {
		return &network{what: "a reserved network", never: true}
	}
	return nil
}

// Special says which special-use network an address lies in; empty means that it is an ordinary one.
func Special(a netip.Addr) string {
	if n := lookup(a); n != nil {
		return n.what
	}
	return ""
}
