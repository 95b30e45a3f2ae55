package configs

import "strings"

// Covers tells whether a list such as that of core.tools.denied names name: as
// it stands, or by an entry with a * at its end, which stands for any rest.
func Covers(list []string, name string) bool {
	for _, entry := range list {
		if begin, open := strings.CutSuffix(entry, "*"); entry == name || open && strings.HasPrefix(name, begin) {
			return true
		}
	}
	return false
}
