package framing_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"

	"homeagent/providers/framing"
)

func message(payload string, headers ...string) []byte {
	var head []byte
	for i := 0; i+1 < len(headers); i += 2 {
		head = append(head, byte(len(headers[i])))
		head = append(head, headers[i]...)
		head = append(head, 7)
		head = binary.BigEndian.AppendUint16(head, uint16(len(headers[i+1])))
		head = append(head, headers[i+1]...)
	}
	return raw(head, payload)
}

func raw(head []byte, payload string) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(16+len(head)+len(payload)))
	out = binary.BigEndian.AppendUint32(out, uint32(len(head)))
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
	out = append(append(out, head...), payload...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
}

func event(kind, payload string) []byte {
	return message(payload, ":event-type", kind, ":message-type", "event", ":content-type", "application/json")
}

func TestEventStream(t *testing.T) {
	in := bytes.Join([][]byte{
		event("messageStart", `{"role":"assistant"}`),
		event("chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(`{"type":"ping"}`))+`","p":"abc"}`),
		event("chunk", `{"other":1}`),
		message(`{"message":"slow down"}`, ":exception-type", "throttlingException", ":message-type", "exception"),
		message("", ":error-code", "Broken", ":error-message", "it \"broke\"", ":message-type", "error"),
		// A header of each other type is stepped over.
		raw([]byte("\x01a\x00\x01b\x01\x01c\x02\x07\x01d\x03\x00\x01\x01e\x04\x00\x00\x00\x01\x01f\x05\x00\x00\x00\x00\x00\x00\x00\x01\x01g\x06\x00\x02xx\x01h\x08\x00\x00\x00\x00\x00\x00\x00\x01\x01i\x09\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), "{}"),
	}, nil)
	want := []string{
		`messageStart|{"role":"assistant"}`, `message|{"type":"ping"}`, `chunk|{"other":1}`,
		`throttlingException|{"message":"slow down"}`, `Broken|{"code":"Broken","message":"it \"broke\""}`, `message|{}`,
	}
	for name, r := range readers(string(in), 5) {
		if got, err := all(t, framing.EventStream, r, 0); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	f, err := framing.New(framing.EventStream, bytes.NewReader(in), 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		e, err := f.Next()
		if err != nil || e.Exception != (i == 3 || i == 4) {
			t.Errorf("event %d: exception %v, %v", i, e.Exception, err)
		}
	}
}

func TestEventStreamIsCut(t *testing.T) {
	whole := event("a", `{"x":1}`)
	for n := 1; n < len(whole); n++ {
		got, err := all(t, framing.EventStream, bytes.NewReader(append(bytes.Clone(whole), whole[:n]...)), 0)
		if err != nil || len(got) != 2 || !strings.HasSuffix(got[1], "|partial") {
			t.Fatalf("cut after %d bytes: %q, %v", n, got, err)
		}
	}
}

func TestEventStreamIsDamaged(t *testing.T) {
	whole := event("a", `{"x":1}`)
	for i := range whole {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x40
		got, err := all(t, framing.EventStream, bytes.NewReader(bad), 0)
		if !errors.Is(err, framing.ErrDamaged) {
			t.Errorf("byte %d changed: %q, %v", i, got, err)
		}
	}
	for name, in := range map[string][]byte{
		"headers longer than the message": func() []byte {
			b := binary.BigEndian.AppendUint32(nil, 20)
			b = binary.BigEndian.AppendUint32(b, 9)
			return append(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)), make([]byte, 8)...)
		}(),
		"unknown header type": raw([]byte("\x01a\x0a"), "{}"),
		"cut header":          raw([]byte("\x05a"), "{}"),
		"cut header value":    raw([]byte("\x01a\x07\x00\x09x"), "{}"),
		"wrapped no base64":   event("chunk", `{"bytes":"*"}`),
	} {
		if got, err := all(t, framing.EventStream, bytes.NewReader(in), 0); !errors.Is(err, framing.ErrDamaged) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestEventStreamLimit(t *testing.T) {
	long := event("a", `{"x":"`+strings.Repeat("y", 5<<20)+`"}`)
	if got, err := all(t, framing.EventStream, bytes.NewReader(long), 0); err != nil || len(got) != 1 || len(got[0]) < 5<<20 {
		t.Errorf("5 MB: %d events, %v", len(got), err)
	}
	if _, err := all(t, framing.EventStream, bytes.NewReader(long), 1<<20); !errors.Is(err, framing.ErrTooLarge) {
		t.Errorf("above the cap: %v", err)
	}
	// A length alone must cost nothing.
	head := binary.BigEndian.AppendUint32(nil, 31<<20)
	head = binary.BigEndian.AppendUint32(head, 0)
	head = binary.BigEndian.AppendUint32(head, crc32.ChecksumIEEE(head))
	if n := testing.AllocsPerRun(5, func() {
		if _, err := all(t, framing.EventStream, bytes.NewReader(head), 0); err != nil {
			t.Fatal(err)
		}
	}); n > 50 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzEventStream checks that no bytes crash the reader, and that the places
// where reads end never change the events.
func FuzzEventStream(f *testing.F) {
	f.Add(event("chunk", `{"bytes":"e30="}`), uint64(1))
	f.Add(append(event("a", "{}"), event("b", "[]")[:20]...), uint64(2))
	f.Add(message("", ":error-code", "x", ":message-type", "error"), uint64(3))
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		want, werr := all(t, framing.EventStream, bytes.NewReader(in), 1<<16)
		got, gerr := all(t, framing.EventStream, &splitter{in, rand.New(rand.NewPCG(seed, 2))}, 1<<16)
		if fmt.Sprint(got, gerr) != fmt.Sprint(want, werr) {
			t.Fatalf("whole %q %v, split %q %v", want, werr, got, gerr)
		}
	})
}
