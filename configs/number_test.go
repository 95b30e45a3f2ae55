package configs

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	cases := []struct {
		text string
		want time.Duration
		bad  string // part of the message; empty when the text is legal
	}{
		{"0", 0, ""},
		{" 0 ", 0, ""},
		{"0s", 0, ""},
		{"1ns", 1, ""},
		{"250ms", 250 * time.Millisecond, ""},
		{"3us", 3 * time.Microsecond, ""},
		{"3µs", 3 * time.Microsecond, ""},
		{"3μs", 3 * time.Microsecond, ""},
		{"2d", 2 * day, ""},
		{"1w2d3h", 9*day + 3*time.Hour, ""},
		{"1w", 7 * day, ""},
		{"1.5h", 90 * time.Minute, ""},
		{"0.5d", 12 * time.Hour, ""},
		{"1.25s", 1250 * time.Millisecond, ""},
		{"1h30m", 90 * time.Minute, ""},
		{"007s", 7 * time.Second, ""},
		{"9223372036854775807ns", math.MaxInt64, ""},
		{"15250w", 15250 * 7 * day, ""},
		{"9223372036854775808ns", 0, "too large"},
		{"18446744073709551616ns", 0, "too large"},
		{"15251w", 0, "too large"},
		{"99999999999w", 0, "too large"},
		{"15250w9999999h", 0, "too large"},
		{"", 0, "legal form"},
		{"5", 0, "legal form"},
		{"h", 0, "legal form"},
		{"-5s", 0, "legal form"},
		{"+5s", 0, "legal form"},
		{"1m1h", 0, "legal form"},
		{"1h1h", 0, "legal form"},
		{"1 h", 0, "legal form"},
		{"1H", 0, "legal form"},
		{".5h", 0, "legal form"},
		{"5.h", 0, "legal form"},
		{"1.2.3h", 0, "legal form"},
		{"1e3s", 0, "legal form"},
		{"1y", 0, "legal form"},
		{"1d ", day, ""},
		{"0.5ns", 0, "finer"},
		{"0.0000000000000000001w", 0, "finer"},
	}
	for _, c := range cases {
		got, err := ParseDuration(c.text)
		checkNumber(t, c.text, got == c.want, err, c.bad)
		if err == nil {
			if back, err := ParseDuration(FormatDuration(got)); err != nil || back != got {
				t.Errorf("%q does not survive formatting: %q, %v", c.text, FormatDuration(got), err)
			}
		}
	}
}

func TestParseSize(t *testing.T) {
	cases := []struct {
		text string
		want int64
		bad  string
	}{
		{"0", 0, ""},
		{"123", 123, ""},
		{"123B", 123, ""},
		{"32MiB", 32 << 20, ""},
		{"32mib", 32 << 20, ""},
		{"2 GB", 2e9, ""},
		{"1.5GiB", 3 << 29, ""},
		{"0.1GB", 1e8, ""},
		{"1KB", 1000, ""},
		{"1KiB", 1024, ""},
		{"9223372036854775807", math.MaxInt64, ""},
		{"9223372036854775808", 0, "too large"},
		{"9000000TiB", 0, "too large"},
		{"99999999TiB", 0, "too large"},
		{"", 0, "legal form"},
		{"2g", 0, "legal form"},
		{"2M", 0, "legal form"},
		{"GB", 0, "legal form"},
		{"-1", 0, "legal form"},
		{"1,5GB", 0, "legal form"},
		{"0.5B", 0, "finer"},
		{"0.1KiB", 0, "finer"},
	}
	for _, c := range cases {
		got, err := ParseSize(c.text)
		checkNumber(t, c.text, got == c.want, err, c.bad)
		if err == nil {
			if back, err := ParseSize(FormatSize(got)); err != nil || back != got {
				t.Errorf("%q does not survive formatting: %q, %v", c.text, FormatSize(got), err)
			}
		}
	}
}

func checkNumber(t *testing.T, text string, equal bool, err error, bad string) {
	t.Helper()
	if bad == "" {
		if err != nil || !equal {
			t.Errorf("%q: wrong value or unexpected error %v", text, err)
		}
		return
	}
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeBadValue || !strings.Contains(e.Message, bad) || e.Hint == "" {
		t.Errorf("%q: error %v, want one that says %q with a hint", text, err, bad)
	}
}

func TestFormat(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 1: "1ns", 36 * time.Hour: "1d12h", 8 * 24 * time.Hour: "1w1d",
		90 * time.Second: "1m30s", 1500 * time.Microsecond: "1ms500us",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("FormatDuration(%d) = %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{
		0: "0B", 1500: "1500B", 2000: "2KB", 1 << 20: "1MiB", 3 << 29: "1536MiB", 2e9: "2GB",
	} {
		if got := FormatSize(n); got != want {
			t.Errorf("FormatSize(%d) = %q, want %q", n, got, want)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, seed := range []string{"0", "1w2d3h4m5s6ms7us8ns", "1.5h", "9223372036854775807ns", "1m1h", "µs", "0.000001d", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err != nil {
			if d != 0 || CodeOf(err) != CodeBadValue {
				t.Fatalf("%q: %v with error %v", text, d, err)
			}
			return
		}
		if d < 0 {
			t.Fatalf("%q is negative: %d", text, d)
		}
		if back, err := ParseDuration(FormatDuration(d)); err != nil || back != d {
			t.Fatalf("%q = %d came back as %d, %v", text, d, back, err)
		}
		// Where the standard parser reads the text too, the two agree.
		if std, err := time.ParseDuration(strings.TrimSpace(text)); err == nil && std != d {
			t.Fatalf("%q = %d, the standard parser says %d", text, d, std)
		}
	})
}

func FuzzParseSize(f *testing.F) {
	for _, seed := range []string{"0", "32MiB", "1.5GiB", "2 GB", "9223372036854775807", "2g", "0.1KiB"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseSize(text)
		if err != nil {
			if n != 0 || CodeOf(err) != CodeBadValue {
				t.Fatalf("%q: %v with error %v", text, n, err)
			}
			return
		}
		if n < 0 {
			t.Fatalf("%q is negative: %d", text, n)
		}
		if back, err := ParseSize(FormatSize(n)); err != nil || back != n {
			t.Fatalf("%q = %d came back as %d, %v", text, n, back, err)
		}
	})
}
