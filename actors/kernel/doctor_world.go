package kernel

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"homeagent/configs"
)

// environment looks at the variables that begin with HOMED_.
func (d *doctor) environment() {
	for _, m := range strange(d.Environ) {
		d.add(SeverityWarning, "variable_unknown", "nobody reads the variable "+m.name, m.hint())
	}
	if err := wrongKeys(d.Environ); err != nil {
		d.add(SeverityError, "variable_wrong", err.Error(), "correct or remove the variable; homed does not start with it")
	}
}

// address looks at where the node listens.
func (d *doctor) address() {
	at := d.Listen
	if at == "" {
		at = d.env("HOMED_LISTEN")
	}
	if d.state != nil && d.out.Running {
		at = d.state.HTTP
	}
	if at == "" {
		return // the default is loopback
	}
	if _, _, err := net.SplitHostPort(at); err != nil {
		d.add(SeverityError, "listen_wrong", fmt.Sprintf("%q is no HOST:PORT", at), "give one such as 127.0.0.1:8765 with --listen")
		return
	}
	if open(at) {
		d.add(SeverityWarning, "listen_open", at+" can be reached by other machines: the token is all that keeps them out, and it travels unencrypted",
			"listen on 127.0.0.1, or put an encrypting proxy before it")
	}
}

// open reports whether an address can be reached from other machines.
func open(at string) bool {
	host, _, err := net.SplitHostPort(at)
	if err != nil || host == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err != nil || !ip.IsLoopback() // a name may be anybody
}

// firstSane is before any build of this program.
var firstSane = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// clock compares the clock with what cannot be later than now, and looks at the time zone.
func (d *doctor) clock() {
	now := d.Now()
	if now.Before(firstSane) {
		d.add(SeverityError, "clock_wrong", "the clock says "+now.UTC().Format(time.RFC3339), "set the clock: times of tasks, timers and certificates depend on it")
	}
	newest, at := "", time.Time{}
	for _, path := range []string{
		filepath.Join(d.layout.Logs(), "homed.log"), filepath.Join(d.layout.Store(), "mark"), d.layout.State(), d.layout.Token(),
	} {
		if info, err := os.Stat(path); err == nil && info.ModTime().After(at) {
			newest, at = path, info.ModTime()
		}
	}
	if ahead := at.Sub(now); ahead > 5*time.Minute {
		d.add(SeverityWarning, "clock_behind", fmt.Sprintf("%s was written %s after what the clock says now", newest, ahead.Round(time.Second)),
			"set the clock; timers that were due meanwhile run late")
	}
	if zone := d.env("TZ"); zone != "" && zone[0] != ':' {
		if _, err := time.LoadLocation(zone); err != nil {
			d.add(SeverityWarning, "zone_unknown", fmt.Sprintf("TZ is %q, which is no time zone; UTC is used", zone), "use a name such as Europe/Berlin")
		}
	}
	if d.env(configs.EnvName(configs.KeyAgentTimezone)) == "" && now.Location() == time.Local && time.Local.String() == "UTC" {
		d.add(SeverityNote, "zone_utc", "the machine's time zone is UTC", "set core.agent.timezone if you live in another one")
	}
}
