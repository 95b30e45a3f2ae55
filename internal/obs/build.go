package obs

import (
	"runtime"
	"runtime/debug"
	"time"
)

// version and revision are set by the linker (-X homeagent/internal/obs.version=1.2.3); revision only where the
// toolchain does not record it by itself.
var (
	version  = "dev"
	revision = ""
)

// Unknown stands for a revision that neither the linker nor the toolchain recorded.
const Unknown = "unknown"

// Build says what this binary is.
type Build struct {
	// Version is the released version, or "dev".
	Version string
	// Revision is the commit it was built from, or "unknown".
	Revision string
	// Modified says that the work tree differed from Revision. False also where that is not known.
	Modified bool
	// Time is the time of that commit in UTC; zero where it is not known.
	Time time.Time
	// Go is the version of the toolchain, such as go1.26.8.
	Go string
	// OS and Arch are the platform it runs on.
	OS, Arch string
}

// ReadBuild reads the build information of the running binary.
func ReadBuild() Build {
	info, _ := debug.ReadBuildInfo() // nil in a binary built without module support: handled as nothing recorded
	return readBuild(info)
}

func readBuild(info *debug.BuildInfo) Build {
	b := Build{
		Version: version, Revision: revision,
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
	}
	if info != nil {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Revision = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			case "vcs.time":
				if t, err := time.Parse(time.RFC3339, s.Value); err == nil {
					b.Time = t.UTC()
				}
			}
		}
	}
	if b.Revision == "" {
		b.Revision = Unknown
	}
	return b
}

// String is the one-line form that `homed version` prints first.
func (b Build) String() string {
	s := b.Version + " (" + b.Revision
	if b.Modified {
		s += ", modified"
	}
	return s + ") " + b.Go + " " + b.OS + "/" + b.Arch
}
