package configs

import (
	"math"
	"strconv"
	"strings"
)

// sizeForms is what a person is told about sizes.
const sizeForms = "a size such as 512KiB, 32MiB, 1.5GiB or 2GB: a number with B, KB, MB, GB, TB (thousands) or " +
	"KiB, MiB, GiB, TiB (1024s); a bare number is bytes"

// sizeUnits is ordered from the largest down. Formatting prefers the binary unit
// where both fit.
var sizeUnits = []unit{
	{"TiB", 1 << 40},
	{"TB", 1e12},
	{"GiB", 1 << 30},
	{"GB", 1e9},
	{"MiB", 1 << 20},
	{"MB", 1e6},
	{"KiB", 1 << 10},
	{"KB", 1e3},
	{"B", 1},
}

// ParseSize reads a number of bytes: a whole or decimal number with a unit of
// thousands (KB, MB, GB, TB) or of 1024s (KiB, MiB, GiB, TiB), in any case of
// letters, or without a unit for bytes. The result is a whole number of bytes
// from 0 to MaxInt64. A bare K, M or G is refused, because people differ about
// what it means. The error is an *Error with CodeBadValue.
func ParseSize(text string) (int64, error) {
	n, err := parseSize(text)
	if err != nil {
		return 0, &Error{Code: CodeBadValue, Message: quoteValue(text) + " is " + err.Error(), Hint: "use " + sizeForms}
	}
	return n, nil
}

func parseSize(text string) (int64, error) {
	number, rest := splitNumber(strings.TrimSpace(text))
	name := strings.TrimLeft(rest, " ")
	if number == "" {
		return 0, errForm
	}
	if name == "" {
		name = "B"
	}
	for _, u := range sizeUnits {
		if !strings.EqualFold(u.name, name) {
			continue
		}
		n, err := scaled(number, u.scale)
		if err != nil {
			return 0, err
		}
		if n > math.MaxInt64 {
			return 0, errOverflow
		}
		return int64(n), nil
	}
	return 0, errForm
}

// FormatSize writes n exactly, in the largest unit that needs no fraction:
// 33554432 is "32MiB", 1500 is "1500B". n is not negative.
func FormatSize(n int64) string {
	if n < 0 {
		panic("configs: negative size")
	}
	if n > 0 {
		for _, u := range sizeUnits {
			if uint64(n)%u.scale == 0 {
				return strconv.FormatUint(uint64(n)/u.scale, 10) + u.name
			}
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}
