package configs

import (
	"fmt"
	"regexp"
	"strings"
)

// Type is the type of a key's value. Its text is what faces of the node show.
type Type string

// The types of values.
const (
	// TypeString is one line of text of at most maxString bytes.
	TypeString Type = "string"
	// TypeText is text with line breaks of at most maxText bytes.
	TypeText Type = "text"
	// TypeInt is a whole number (int64).
	TypeInt Type = "int"
	// TypeFloat is a finite number (float64).
	TypeFloat Type = "float"
	// TypeBool is true or false; yes, no, on, off, 1 and 0 are read too.
	TypeBool Type = "bool"
	// TypeDuration is a span of time as ParseDuration reads it.
	TypeDuration Type = "duration"
	// TypeSize is a number of bytes as ParseSize reads it.
	TypeSize Type = "size"
	// TypeEnum is one of Key.Options.
	TypeEnum Type = "enum"
	// TypeList is a list of strings, separated by commas or line breaks; no
	// entry is empty and the order is kept.
	TypeList Type = "list"
	// TypeURL is an absolute http or https address without user, query or
	// fragment.
	TypeURL Type = "url"
	// TypeSecret is one line of text that is sealed at rest and never shown.
	TypeSecret Type = "secret"
)

// Apply says when a changed value takes effect.
type Apply string

// The times of effect.
const (
	// Live means at once: subscribers are told.
	Live Apply = "live"
	// Restart means at the next start of the node; until then the value that was
	// in force at the start stays in force, everywhere.
	Restart Apply = "restart"
)

// Category groups keys on a settings page.
type Category string

// The categories, in the order in which they are shown.
const (
	CategoryAgent  Category = "agent"
	CategoryModels Category = "models"
	CategoryTools  Category = "tools"
	CategoryGuard  Category = "guard"
	CategoryMemory Category = "memory"
	CategoryNode   Category = "node"
	CategoryAdmin  Category = "admin"
	CategoryPlugin Category = "plugin"
)

var categories = []Category{
	CategoryAgent, CategoryModels, CategoryTools, CategoryGuard, CategoryMemory, CategoryNode, CategoryAdmin, CategoryPlugin,
}

// Key declares one setting, or with a wildcard segment one setting per named
// thing. All values in it are written as text in the form a person would use.
type Key struct {
	// Name is the dotted name: lower-case segments of letters, digits and
	// underscores under core. or plugin.<name>.; one segment may be <name>, the
	// wildcard.
	Name string
	// Type is the type of the value.
	Type Type
	// Unit is what a number counts, such as "tokens"; empty for durations and
	// sizes, which carry their unit in the text.
	Unit string
	// Default is the value when nothing else is given; empty means unset, which
	// the getters return as the zero value of the type. A secret has no default.
	Default string
	// Min and Max are inclusive bounds of int, float, duration and size; empty
	// means that the type alone bounds.
	Min, Max string
	// Step is the increment a settings page offers; it is no rule.
	Step string
	// Options are the legal values of an enum.
	Options []string
	// Required marks the key of a wildcard group without which the named thing
	// does not exist, or a plain key that may not be unset to empty.
	Required bool
	// English and Chinese are the display names.
	English, Chinese string
	// Category is the group on a settings page.
	Category Category
	// Description says what the value does and what zero or empty means.
	Description string
	// Apply says when a change takes effect.
	Apply Apply
	// Check is a further rule on the canonical text; nil means none. Its error
	// text completes the sentence "<value> is ...".
	Check func(canonical string) error
}

// Secret reports whether the value is sealed at rest and never shown.
func (k Key) Secret() bool { return k.Type == TypeSecret }

// wildcard is the segment of a pattern that stands for a name.
const wildcard = "<name>"

var (
	segmentForm  = regexp.MustCompile(`^[a-z0-9]([a-z0-9_]*[a-z0-9])?$`)
	instanceForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9_-]{0,62}[a-z0-9])?$`)
)

const instanceForms = "a name of up to 64 lower-case letters, digits, hyphens and underscores that starts and ends with a letter or digit"

// pattern is a Key prepared for matching.
type pattern struct {
	Key
	prefix, suffix string // around the wildcard; prefix is the whole name when there is none
	wild           bool
	// env is the environment name; of a wildcard key envHead and envTail are the
	// parts around the wildcard.
	env, envHead, envTail string
	fallback              Value // the parsed default
	min, max              Value
	owner                 string // who declared it: "core" or the plugin
}

// group is the dotted name up to and with the wildcard's dot, empty for a plain key.
func (p *pattern) group() string {
	if !p.wild {
		return ""
	}
	return p.prefix
}

// instance returns the concrete name for the named thing.
func (p *pattern) instance(name string) string {
	if !p.wild {
		return p.prefix
	}
	return p.prefix + name + p.suffix
}

// match returns the name the wildcard stands for in key.
func (p *pattern) match(key string) (name string, ok bool) {
	if !p.wild {
		return "", key == p.prefix
	}
	rest, ok := strings.CutPrefix(key, p.prefix)
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(rest, p.suffix)
	return name, ok && name != "" && !strings.Contains(name, ".")
}

// compile checks a declaration and prepares it.
func compile(k Key, owner string) (*pattern, error) {
	p := &pattern{Key: k, owner: owner, prefix: k.Name}
	if err := p.compileName(); err != nil {
		return nil, err
	}
	p.env, p.envHead, p.envTail = EnvName(k.Name), EnvName(p.prefix), envPart(p.suffix)
	bad := func(what string) error {
		return &Error{Code: CodeBadKey, Key: k.Name, Message: "the declaration of " + k.Name + " " + what}
	}
	if err := p.checkTexts(bad); err != nil {
		return nil, err
	}
	for _, bound := range []struct {
		text string
		into *Value
		what string
	}{{k.Min, &p.min, "minimum"}, {k.Max, &p.max, "maximum"}, {k.Step, new(Value), "step"}} {
		if bound.text == "" {
			continue
		}
		if !k.Type.ordered() {
			return nil, bad("has a " + bound.what + " although a " + string(k.Type) + " has no order")
		}
		value, err := parseType(k.Type, bound.text)
		if err != nil {
			return nil, bad(fmt.Sprintf("has a %s that is %v", bound.what, err))
		}
		*bound.into = value
	}
	p.fallback = Value{kind: k.Type}
	if k.Default != "" {
		value, err := p.parse(k.Name, k.Default)
		if err != nil {
			return nil, bad("has an illegal default: " + err.Error())
		}
		p.fallback = value
	}
	return p, nil
}

func (p *pattern) compileName() error {
	bad := func(what string) error {
		return &Error{Code: CodeBadKey, Key: p.Name, Message: "the key name " + quoteValue(p.Name) + " " + what}
	}
	segments := strings.Split(p.Name, ".")
	for i, segment := range segments {
		switch {
		case segment == wildcard:
			if p.wild || i == 0 || i == len(segments)-1 && segments[0] == "plugin" {
				return bad("has a wildcard where none may be")
			}
			p.wild = true
			p.prefix = strings.Join(segments[:i], ".") + "."
			p.suffix = strings.TrimPrefix(p.Name, p.prefix+wildcard)
		case i == 1 && segments[0] == "plugin":
			if !instanceForm.MatchString(segment) {
				return bad("needs " + instanceForms + " as the name of the plugin")
			}
		case !segmentForm.MatchString(segment):
			return bad("has a segment that is not lower-case letters, digits and underscores")
		}
	}
	switch {
	case segments[0] == "core" && len(segments) >= 3 && p.owner == Core:
	case segments[0] == "plugin" && len(segments) >= 3 && segments[1] == p.owner && p.owner != Core:
	default:
		return bad("must be core.<part>.<key>, or plugin.<name>.<key> declared by that plugin")
	}
	return nil
}

func (p *pattern) checkTexts(bad func(string) error) error {
	switch {
	case !p.Type.known():
		return bad("has the unknown type " + quoteValue(string(p.Type)))
	case p.Apply != Live && p.Apply != Restart:
		return bad("does not say whether a change is live or needs a restart")
	case p.English == "" || p.Chinese == "" || p.Description == "":
		return bad("lacks a display name or a description")
	case (p.Type == TypeEnum) != (len(p.Options) > 0):
		return bad("must have options exactly when it is an enum")
	case p.Secret() && p.Default != "":
		return bad("gives a secret a default")
	}
	for _, c := range categories {
		if c == p.Category {
			return nil
		}
	}
	return bad("has the unknown category " + quoteValue(string(p.Category)))
}

// legal describes the legal values for people.
func (p *pattern) legal() string {
	switch p.Type {
	case TypeEnum:
		return "one of " + strings.Join(p.Options, ", ")
	case TypeBool:
		return "true or false"
	case TypeDuration:
		if p.Min == "" || p.min.num == 0 {
			return p.bounded(durationForms + "; or 0")
		}
		return p.bounded(durationForms)
	case TypeSize:
		return p.bounded(sizeForms)
	case TypeInt:
		return p.bounded("a whole number")
	case TypeFloat:
		return p.bounded("a number")
	case TypeURL:
		return "an absolute http or https address without user name, query or fragment"
	case TypeList:
		return fmt.Sprintf("up to %d entries separated by commas or line breaks", maxList)
	case TypeText:
		return "text of up to " + FormatSize(maxText)
	case TypeString, TypeSecret:
		return "one line of up to " + FormatSize(maxString)
	}
	panic("configs: unknown type " + string(p.Type))
}

func (p *pattern) bounded(form string) string {
	switch {
	case p.Min != "" && p.Max != "":
		return form + ", from " + p.Min + " to " + p.Max
	case p.Min != "":
		return form + ", at least " + p.Min
	case p.Max != "":
		return form + ", at most " + p.Max
	}
	return form
}

func (t Type) ordered() bool {
	return t == TypeInt || t == TypeFloat || t == TypeDuration || t == TypeSize
}

func (t Type) known() bool {
	switch t {
	case TypeString, TypeText, TypeInt, TypeFloat, TypeBool, TypeDuration, TypeSize, TypeEnum, TypeList, TypeURL, TypeSecret:
		return true
	}
	return false
}
