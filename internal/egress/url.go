package egress

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// maxURL is the longest URL in bytes.
const maxURL = 8 << 10

// ParseURL reads the URL of something to fetch and brings its host into the one form that is checked and dialed: lower
// case, ASCII, without a trailing dot. The fragment is dropped. The error is an *Error with CodeBadURL.
func ParseURL(text string) (*url.URL, error) {
	if len(text) > maxURL {
		return nil, badURL("The URL is longer than 8 KiB.", "")
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }) {
		return nil, badURL("The URL holds spaces, backslashes or control characters.", "Write them as %20 and the like.")
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, badURL("The URL cannot be read.", "Write it like https://example.com/page.")
	}
	if fault := canonical(u); fault != nil {
		return nil, fault
	}
	return u, nil
}

// canonical checks a URL and puts its host right.
func canonical(u *url.URL) *Error {
	u.Scheme = strings.ToLower(u.Scheme)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return badURL("Only http and https are fetched.", "Write the URL like https://example.com/page.")
	case u.Opaque != "" || u.Host == "":
		return badURL("The URL names no host.", "Write it like https://example.com/page.")
	case u.User != nil:
		return badURL("The URL holds a user name or password.", "Leave it out.")
	}
	name, ip, fault := parseHost(hostOf(u))
	if fault != nil {
		return fault
	}
	port := u.Port()
	if strings.HasSuffix(u.Host, ":") {
		port = ""
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return badURL("There is no port "+port+".", "")
		}
		if slices.Contains(badPorts, uint16(n)) {
			return badURL("Port "+port+" is that of another service than HTTP.", "")
		}
		port = strconv.FormatUint(n, 10)
	}
	u.Host = name
	if ip.Is6() {
		u.Host = "[" + name + "]"
	}
	if port != "" {
		u.Host += ":" + port
	}
	u.Fragment, u.RawFragment = "", ""
	return nil
}

// hostOf is the host of a URL, with the brackets of an IPv6 address.
func hostOf(u *url.URL) string {
	if strings.HasPrefix(u.Host, "[") {
		if end := strings.IndexByte(u.Host, ']'); end > 0 {
			return u.Host[:end+1]
		}
	}
	return u.Hostname()
}

var toASCII = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false), idna.Transitional(false))

// parseHost brings a host into its one form. ip is valid when it is an address.
func parseHost(host string) (name string, ip netip.Addr, fault *Error) {
	if in, ok := strings.CutPrefix(host, "["); ok {
		in, ok = strings.CutSuffix(in, "]")
		ip, err := netip.ParseAddr(in)
		if !ok || err != nil || !ip.Is6() || ip.Zone() != "" {
			return "", netip.Addr{}, badURL("The host is no IPv6 address.", "Zones are not taken.")
		}
		return ip.String(), ip, nil
	}
	name, err := toASCII.ToASCII(host)
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if again, twice := toASCII.ToASCII(name); err != nil || twice != nil || again != name || !utf8.ValidString(host) || !plainHost(name) {
		return "", netip.Addr{}, badURL("The host "+strconv.Quote(host)+" is no name of a host.", "")
	}
	if !numeric(name) {
		return name, netip.Addr{}, nil
	}
	ip, err = netip.ParseAddr(name)
	if err != nil || !ip.Is4() {
		return "", netip.Addr{}, badURL("The host "+strconv.Quote(host)+" looks like an address and is none that can be read in one way only.",
			"Write the address as four decimal numbers with dots between them.")
	}
	return name, ip, nil
}

// plainHost tells whether a name has only what names of hosts have.
func plainHost(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return false
		}
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_'
	})
}

// numeric tells whether some readers take a name for an IPv4 address: its last part is a number.
func numeric(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	digits, hex := strings.CutPrefix(last, "0x")
	return !strings.ContainsFunc(digits, func(r rune) bool {
		return (r < '0' || r > '9') && (!hex || r < 'a' || r > 'f')
	})
}

// badPorts are those on which something else than HTTP listens that could be spoken to by accident; browsers refuse the
// same ones.
var badPorts = []uint16{
	1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110, 111,
	113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548,
	554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6379,
	6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080, 11211,
}
