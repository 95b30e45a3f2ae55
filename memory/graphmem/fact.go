package graphmem

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/cayleygraph/quad"
)

// MaxText is the most bytes of a subject, predicate or object. What is longer is
// a text; it would not fit one transaction of the store with its index.
const MaxText = 64 << 10

// Fact is one dated statement. Times are UTC.
type Fact struct {
	// ID names the fact for ever; the caller derives it from the call that
	// states the fact, so that a repeated call stores nothing twice.
	ID string
	// Subject, Predicate, Object in the words they were given, kept byte for byte;
	// at most MaxText bytes each.
	Subject, Predicate, Object string
	// SubjectType and ObjectType say what kind of thing each is, such as "person";
	// may be empty.
	SubjectType, ObjectType string
	// Functional says that the subject has one object of this predicate at a
	// time: storing the fact closes the open one of the same subject and predicate.
	Functional bool
	// ValidFrom is since when it holds; zero means since LearnedAt.
	ValidFrom time.Time
	// ValidTo is until when it held; zero means it still holds.
	ValidTo time.Time
	// LearnedAt is when the node learned it; required.
	LearnedAt time.Time
	// Source is the id of the context event it came from; empty for facts that
	// were entered by hand.
	Source string
	// Principal is who said it; empty when unknown.
	Principal string
	// Taint is the taint word of the source; empty means none.
	Taint string
	// Confidence is 0..1; zero is taken as 1.
	Confidence float64
	// Retracted is when it was withdrawn; zero means it stands. Read only.
	Retracted time.Time
}

// ValidAt reports whether the fact stands and holds at t.
func (f *Fact) ValidAt(t time.Time) bool {
	return f.Retracted.IsZero() && !f.ValidFrom.After(t) && (f.ValidTo.IsZero() || f.ValidTo.After(t))
}

// normalise fills defaults and checks the fact.
func (f *Fact) normalise() error {
	if f.Confidence == 0 {
		f.Confidence = 1
	}
	if f.ValidFrom.IsZero() {
		f.ValidFrom = f.LearnedAt
	}
	switch {
	case f.ID == "":
		return fmt.Errorf("%w: no id", ErrInvalid)
	case Key(f.Subject) == "":
		return fmt.Errorf("%w: no subject", ErrInvalid)
	case Key(f.Predicate) == "":
		return fmt.Errorf("%w: no predicate", ErrInvalid)
	case Key(f.Object) == "":
		return fmt.Errorf("%w: no object", ErrInvalid)
	case max(len(f.Subject), len(f.Predicate), len(f.Object)) > MaxText:
		return fmt.Errorf("%w: a subject, predicate or object of more than %d bytes", ErrInvalid, MaxText)
	case f.LearnedAt.IsZero():
		return fmt.Errorf("%w: no learned_at", ErrInvalid)
	case f.Confidence < 0 || f.Confidence > 1:
		return fmt.Errorf("%w: confidence %v is outside 0..1", ErrInvalid, f.Confidence)
	case !f.ValidTo.IsZero() && f.ValidTo.Before(f.ValidFrom):
		return fmt.Errorf("%w: valid_to is before valid_from", ErrInvalid)
	}
	return nil
}

// Predicates of a fact node.
const (
	predSubject   = quad.IRI("subj")
	predPredicate = quad.IRI("pred")
	predObject    = quad.IRI("obj")
	predFrom      = quad.IRI("valid_from")
	predTo        = quad.IRI("valid_to")
	predLearned   = quad.IRI("learned_at")
	predSource    = quad.IRI("source")
	predDetail    = quad.IRI("detail")
	predRetracted = quad.IRI("retracted")
)

func factNode(id string) quad.IRI      { return quad.IRI("f/" + id) }
func entityNode(key string) quad.IRI   { return quad.IRI("e/" + key) }
func predNode(key string) quad.IRI     { return quad.IRI("p/" + key) }
func sourceNode(event string) quad.IRI { return quad.IRI("s/" + event) }

// label names what the quads of a write come from: the source event, or the
// fact itself when it was entered by hand.
func (f *Fact) label() quad.IRI {
	if f.Source != "" {
		return sourceNode(f.Source)
	}
	return factNode(f.ID)
}

// detail is the literal at predDetail. Version 1.
type detail struct {
	Version    int     `json:"v"`
	Subject    string  `json:"s"`
	Predicate  string  `json:"p"`
	Object     string  `json:"o"`
	Confidence float64 `json:"c"`
	Functional bool    `json:"f,omitempty"`
	Principal  string  `json:"by,omitempty"`
	Taint      string  `json:"t,omitempty"`
	// Kinds of subject and object.
	SubjectType string `json:"st,omitempty"`
	ObjectType  string `json:"ot,omitempty"`
}

const detailVersion = 1

// quads returns the quads that state f, in a fixed order.
func (f *Fact) quads() ([]quad.Quad, error) {
	d, err := json.Marshal(detail{
		Version: detailVersion, Subject: f.Subject, Predicate: f.Predicate, Object: f.Object,
		Confidence: f.Confidence, Functional: f.Functional, Principal: f.Principal, Taint: f.Taint,
		SubjectType: f.SubjectType, ObjectType: f.ObjectType,
	})
	if err != nil {
		return nil, fmt.Errorf("encode detail: %w", err)
	}
	node, label := factNode(f.ID), f.label()
	q := func(p quad.IRI, o quad.Value) quad.Quad {
		return quad.Quad{Subject: node, Predicate: p, Object: o, Label: label}
	}
	out := []quad.Quad{
		q(predSubject, entityNode(Key(f.Subject))),
		q(predPredicate, predNode(Key(f.Predicate))),
		q(predObject, entityNode(Key(f.Object))),
		q(predFrom, quad.Time(f.ValidFrom.UTC())),
		q(predLearned, quad.Time(f.LearnedAt.UTC())),
		q(predDetail, quad.String(d)),
	}
	if f.Source != "" {
		out = append(out, q(predSource, sourceNode(f.Source)))
	}
	if !f.ValidTo.IsZero() {
		out = append(out, q(predTo, quad.Time(f.ValidTo.UTC())))
	}
	return out, nil
}

// set fills the field of f that predicate p stands for.
func (f *Fact) set(p quad.IRI, v quad.Value) error {
	switch p {
	case predSource:
		iri, ok := v.(quad.IRI)
		if !ok || !strings.HasPrefix(string(iri), "s/") {
			return fmt.Errorf("%w: source %v", ErrCorrupt, v)
		}
		f.Source = string(iri[len("s/"):])
		return nil
	case predDetail:
		return f.setDetail(v)
	}
	t, ok := v.(quad.Time)
	if !ok {
		return fmt.Errorf("%w: %s is %T", ErrCorrupt, p, v)
	}
	at := time.Time(t).UTC()
	switch p {
	case predFrom:
		f.ValidFrom = at
	case predTo:
		// A fact can be closed more than once; the earliest end counts.
		if f.ValidTo.IsZero() || at.Before(f.ValidTo) {
			f.ValidTo = at
		}
	case predLearned:
		f.LearnedAt = at
	case predRetracted:
		f.Retracted = at
	}
	return nil
}

func (f *Fact) setDetail(v quad.Value) error {
	s, ok := v.(quad.String)
	if !ok {
		return fmt.Errorf("%w: detail is %T", ErrCorrupt, v)
	}
	var d detail
	if err := json.Unmarshal([]byte(s), &d); err != nil {
		return fmt.Errorf("%w: detail: %w", ErrCorrupt, err)
	}
	if d.Version != detailVersion {
		return fmt.Errorf("%w: detail version %d", ErrCorrupt, d.Version)
	}
	f.Subject, f.Predicate, f.Object = d.Subject, d.Predicate, d.Object
	f.SubjectType, f.ObjectType = d.SubjectType, d.ObjectType
	f.Confidence, f.Functional, f.Principal, f.Taint = d.Confidence, d.Functional, d.Principal, d.Taint
	return nil
}
