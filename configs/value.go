package configs

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of texts, in bytes, and of lists, in entries.
const (
	maxString = 4 << 10
	maxText   = 64 << 10
	maxList   = 256
)

// Value is one typed value. It is immutable; the zero Value is no value.
type Value struct {
	kind Type
	set  bool
	text string // canonical; for a secret the plain text
	num  int64  // int, size, duration in ns, bool as 0 or 1
	real float64
	list []string
}

// Type returns the type.
func (v Value) Type() Type { return v.kind }

// IsSet reports whether there is a value: false means that neither the
// environment nor the store nor the declaration gives one.
func (v Value) IsSet() bool { return v.set }

// Text returns the canonical text; for a secret "set" or "unset".
func (v Value) Text() string {
	if v.kind == TypeSecret {
		if v.set {
			return "set"
		}
		return "unset"
	}
	return v.text
}

// equal compares type and content.
func (v Value) equal(o Value) bool {
	return v.kind == o.kind && v.set == o.set && v.text == o.text
}

// compare orders two values of one ordered type.
func (v Value) compare(o Value) int {
	if v.kind == TypeFloat {
		return cmp.Compare(v.real, o.real)
	}
	return cmp.Compare(v.num, o.num)
}

// parse reads text as a value of the key; name is the concrete name for the message.
func (p *pattern) parse(name, text string) (Value, error) {
	value, err := parseType(p.Type, text)
	hint := "use " + p.legal() + p.nearestOption(text)
	if err == nil {
		err = p.check(value)
	}
	if err == nil && p.Check != nil {
		err = p.Check(value.text)
		hint = "correct it, or leave the key unset" // what is legal is said by the check itself
	}
	switch {
	case err == nil:
		return value, nil
	case errors.Is(err, errEmpty):
		hint = "unset the key instead: waiter config set --default " + name
	}
	shown := quoteValue(text)
	if p.Secret() {
		shown = "the value"
	}
	return Value{}, &Error{
		Code: CodeBadValue, Key: name,
		Message: fmt.Sprintf("%s: %s is %v", name, shown, err),
		Hint:    hint,
	}
}

func (p *pattern) nearestOption(text string) string {
	if p.Type != TypeEnum {
		return ""
	}
	if near := nearest(strings.ToLower(strings.TrimSpace(text)), p.Options, 1); len(near) == 1 {
		return "; did you mean " + near[0] + "?"
	}
	return ""
}

func (p *pattern) check(v Value) error {
	if p.Type == TypeEnum && !slices.Contains(p.Options, v.text) {
		return errors.New("not among the options")
	}
	if p.min.set && v.compare(p.min) < 0 {
		return errors.New("below the minimum " + p.min.text)
	}
	if p.max.set && v.compare(p.max) > 0 {
		return errors.New("above the maximum " + p.max.text)
	}
	return nil
}

// errEmpty is what is wrong with a text that says nothing.
var errEmpty = errors.New("empty")

// parseType reads text as a value of type t, without the bounds of a key.
func parseType(t Type, text string) (Value, error) {
	v := Value{kind: t, set: true}
	if !utf8.ValidString(text) {
		return Value{}, errors.New("not valid UTF-8")
	}
	var err error
	switch t {
	case TypeString, TypeSecret:
		v.text, err = parseLine(text)
	case TypeText:
		v.text, err = parseText(text)
	case TypeEnum:
		v.text = strings.ToLower(strings.TrimSpace(text))
	case TypeInt:
		if v.num, err = strconv.ParseInt(strings.TrimSpace(text), 10, 64); err != nil {
			return Value{}, errors.New("not a whole number, or too large for one")
		}
		v.text = strconv.FormatInt(v.num, 10)
	case TypeFloat:
		v.real, err = parseFloat(text)
		v.text = strconv.FormatFloat(v.real, 'g', -1, 64)
	case TypeBool:
		v.num, v.text, err = parseBool(text)
	case TypeDuration:
		var d time.Duration
		d, err = parseDuration(text)
		v.num, v.text = int64(d), FormatDuration(d)
	case TypeSize:
		v.num, err = parseSize(text)
		v.text = FormatSize(v.num)
	case TypeURL:
		v.text, err = parseURL(text)
	case TypeList:
		v.list, err = parseList(text)
		v.text = strings.Join(v.list, ",")
	default:
		panic("configs: unknown type " + string(t))
	}
	if err != nil {
		return Value{}, err
	}
	return v, nil
}

func parseLine(text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return "", errEmpty
	}
	if len(text) > maxString {
		return "", fmt.Errorf("longer than %s", FormatSize(maxString))
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		return "", errors.New("not one line of printable text")
	}
	return text, nil
}

func parseText(text string) (string, error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if strings.TrimSpace(text) == "" {
		return "", errEmpty
	}
	if len(text) > maxText {
		return "", fmt.Errorf("longer than %s", FormatSize(maxText))
	}
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
		return "", errors.New("not plain text: it holds control characters")
	}
	return text, nil
}

func parseFloat(text string) (float64, error) {
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, errors.New("not a finite number")
	}
	return f, nil
}

func parseBool(text string) (int64, string, error) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "yes", "on", "1":
		return 1, "true", nil
	case "false", "no", "off", "0":
		return 0, "false", nil
	}
	return 0, "", errors.New("neither true nor false")
}

func parseURL(text string) (string, error) {
	text = strings.TrimSpace(text)
	if len(text) > maxString {
		return "", fmt.Errorf("longer than %s", FormatSize(maxString))
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "", errors.New("not an address")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("not an http or https address")
	case u.Hostname() == "":
		return "", errors.New("an address without a host")
	case u.User != nil:
		return "", errors.New("an address with a user name or password in it; keep credentials in a secret key")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", errors.New("an address with a query or a fragment")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// parseList splits at commas and line breaks. An entry that holds a comma cannot
// be written; none of the lists of the node needs one.
func parseList(text string) ([]string, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("longer than %s", FormatSize(maxText))
	}
	var list []string
	for entry := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' }) {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		if strings.ContainsFunc(entry, unicode.IsControl) {
			return nil, errors.New("a list with control characters in it")
		}
		if !slices.Contains(list, entry) {
			list = append(list, entry)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("an empty list; unset the key instead")
	}
	if len(list) > maxList {
		return nil, fmt.Errorf("a list of more than %d entries", maxList)
	}
	return list, nil
}
