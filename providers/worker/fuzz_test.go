package worker

import (
	"bytes"
	"io"
	"testing"
)

// FuzzFrames has both sides read bytes that nobody vouches for: they end, and take no more memory than came.
func FuzzFrames(f *testing.F) {
	for _, q := range []any{
		&question{Op: opLoad, Name: "a", Files: map[string][]byte{"a.lua": []byte("return 1")}}, &question{Op: opEnd},
		&reply{Op: opDone, Pieces: []piece{{Counted: []byte{8, 1}}}}, &reply{Op: opLog, Text: "x"},
	} {
		var b bytes.Buffer
		if err := write(&b, q); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{7, 0xff, 0xff, 0xff, '{'})
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		for {
			var rep reply
			if read(r, &rep) != nil {
				break
			}
			if got, err := piecesIn(rep.Pieces); err == nil && len(got) != len(rep.Pieces) {
				t.Fatalf("%d pieces of %d", len(got), len(rep.Pieces))
			}
		}
		if err := Serve(bytes.NewReader(in), io.Discard, nil); err == nil && len(in) > 0 && len(in) < 4 {
			t.Fatal("half a frame is no end")
		}
	})
}
