package block

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/memory/store"
	"homeagent/messages"
)

func memory(t testing.TB) *store.DB {
	t.Helper()
	db, err := store.Open("", store.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func text(id, s string) *messages.Block {
	return &messages.Block{
		BlockId: id, Content: &messages.Part{Content: &messages.Part_Text{Text: s}},
		Principal: &messages.Principal{Id: "owner"}, Source: "input", Taint: messages.Taint_TAINT_TRUSTED,
	}
}

func update(t *testing.T, db *store.DB, fn func(store.Txn) error) {
	t.Helper()
	if err := db.Update(fn); err != nil {
		t.Fatal(err)
	}
}

func keys(t *testing.T, db *store.DB, space store.Space) int {
	t.Helper()
	n := 0
	err := db.View(func(txn store.Txn) error {
		for _, err := range txn.Scan(store.Range{Space: space}) {
			if err != nil {
				return err
			}
			n++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTextBlocks(t *testing.T) {
	for _, size := range []int{0, 5, InlineSize, InlineSize + 1, ChunkSize, ChunkSize + 1, 3*ChunkSize + 7} {
		db := memory(t)
		in := text("b1", strings.Repeat("ä", size/2)+strings.Repeat("x", size%2))
		var put *messages.Block
		update(t, db, func(txn store.Txn) (err error) { put, err = Put(txn, in); return err })
		if put.GetPayloadId() != PayloadID("", []byte(in.GetContent().GetText())) || in.GetPayloadId() != "" {
			t.Fatalf("size %d: payload id %q, input's %q", size, put.GetPayloadId(), in.GetPayloadId())
		}
		err := db.View(func(txn store.Txn) error {
			got, err := Get(txn, "b1")
			if err == nil && !proto.Equal(got, put) {
				t.Errorf("size %d: another block came back", size)
			}
			return err
		})
		if err != nil {
			t.Fatalf("size %d: %v", size, err)
		}
	}
}

func TestPayloadGoesWithItsLastBlock(t *testing.T) {
	db := memory(t)
	long := strings.Repeat("shared ", 10_000)
	update(t, db, func(txn store.Txn) error {
		for _, id := range []string{"b1", "b2", "b1"} {
			if _, err := Put(txn, text(id, long)); err != nil {
				return err
			}
		}
		return nil
	})
	stored := keys(t, db, store.Payload)
	if stored != 2 || keys(t, db, store.Block) != 2 {
		t.Fatalf("%d payload keys, %d blocks", stored, keys(t, db, store.Block))
	}
	update(t, db, func(txn store.Txn) error { return Delete(txn, "b1") })
	if keys(t, db, store.Payload) != stored {
		t.Fatal("the payload went while a block holds it")
	}
	update(t, db, func(txn store.Txn) error { return Delete(txn, "b1") })
	update(t, db, func(txn store.Txn) error { return Delete(txn, "b2") })
	if n := keys(t, db, store.Payload) + keys(t, db, store.Block); n != 0 {
		t.Fatalf("%d keys left", n)
	}
}

func TestMedia(t *testing.T) {
	db := memory(t)
	data := make([]byte, 5<<20+3)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	media := &messages.Block{BlockId: "m", Modality: "image"}
	ref := func(id string) *messages.Part {
		return &messages.Part{Content: &messages.Part_Payload{Payload: &messages.PayloadRef{Id: id, MediaType: "image/png"}}}
	}
	media.Content = ref("blk_media_none")
	err := db.Update(func(txn store.Txn) error { _, err := Put(txn, media); return err })
	if !errors.Is(err, ErrNoPayload) {
		t.Fatalf("block without payload: %v", err)
	}
	got, err := PutPayload(db, " Image/PNG ", data)
	if err != nil || !strings.HasPrefix(got.GetId(), "blk_media_") || got.GetMediaType() != "image/png" {
		t.Fatalf("ref %v, %v", got, err)
	}
	if again, err := PutPayload(db, "image/png", data); err != nil || again.GetId() != got.GetId() {
		t.Fatalf("second time %v, %v", again, err)
	}
	media.Content = ref(got.GetId())
	update(t, db, func(txn store.Txn) error { _, err := Put(txn, media); return err })
	if n, _, err := Sweep(db, time.Now().Add(time.Hour), "", 10); err != nil || n != 0 {
		t.Fatalf("sweep took a held payload: %d, %v", n, err)
	}
	err = db.View(func(txn store.Txn) error {
		kind, back, err := Payload(txn, got.GetId())
		if err == nil && (kind != "image/png" || !bytes.Equal(back, data)) {
			t.Error("another payload came back")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSweepTakesWhatNoBlockHolds(t *testing.T) {
	db := memory(t)
	for _, size := range []int{10, 3 * ChunkSize} {
		if _, err := PutPayload(db, "video/mp4", make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	if n, next, err := Sweep(db, time.Now().Add(-time.Hour), "", 10); err != nil || n != 0 || next != "" {
		t.Fatalf("payloads whose block may still come: swept %d, %q, %v", n, next, err)
	}
	later := time.Now().Add(time.Hour)
	n, next, err := Sweep(db, later, "", 1)
	if err != nil || n != 1 || next == "" {
		t.Fatalf("one at a time: swept %d, %q, %v", n, next, err)
	}
	if n, next, err = Sweep(db, later, next, 1); err != nil || n != 1 || next != "" {
		t.Fatalf("the other: swept %d, %q, %v", n, next, err)
	}
	if n := keys(t, db, store.Payload); n != 0 {
		t.Fatalf("%d keys left", n)
	}
}

func TestDamageIsSeen(t *testing.T) {
	db := memory(t)
	ref, err := PutPayload(db, "video/mp4", bytes.Repeat([]byte("a"), 3*ChunkSize))
	if err != nil {
		t.Fatal(err)
	}
	read := func() error {
		return db.View(func(txn store.Txn) error { _, _, err := Payload(txn, ref.GetId()); return err })
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	key := chunkKey(ref.GetId(), 1)
	update(t, db, func(txn store.Txn) error {
		return txn.Put(key, store.Seal(Version, key, bytes.Repeat([]byte("b"), ChunkSize)))
	})
	if err := read(); !errors.Is(err, ErrDigest) {
		t.Errorf("replaced chunk: %v", err)
	}
	update(t, db, func(txn store.Txn) error { return txn.Put(key, []byte("junk")) })
	if err := read(); !errors.Is(err, store.ErrRecord) {
		t.Errorf("broken chunk: %v", err)
	}
	update(t, db, func(txn store.Txn) error { return txn.Delete(key) })
	if err := read(); !errors.Is(err, ErrDigest) {
		t.Errorf("missing chunk: %v", err)
	}
}

func TestInvalidBlocks(t *testing.T) {
	db := memory(t)
	for name, b := range map[string]*messages.Block{
		"no id":      text("", "x"),
		"zero byte":  text("a\x00b", "x"),
		"long id":    text(strings.Repeat("a", maxID+1), "x"),
		"no content": {BlockId: "a"},
		"no payload": {BlockId: "a", Content: &messages.Part{Content: &messages.Part_Payload{Payload: &messages.PayloadRef{}}}},
	} {
		err := db.Update(func(txn store.Txn) error { _, err := Put(txn, b); return err })
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPayloadID(t *testing.T) {
	if a, b := PayloadID("", []byte("x")), PayloadID("text/plain", []byte("x")); a != b || !strings.HasPrefix(a, "blk_src_") || len(a) != 48 {
		t.Errorf("text ids %s, %s", a, b)
	}
	seen := map[string]bool{}
	for _, id := range []string{
		PayloadID("a", []byte("b")), PayloadID("ab", nil), PayloadID("", []byte("a\x00b")), PayloadID("image/png", []byte("b")),
	} {
		if seen[id] {
			t.Errorf("two contents are named %s", id)
		}
		seen[id] = true
	}
}

// FuzzPayloadHead puts foreign bytes where a head or a chunk is expected.
func FuzzPayloadHead(f *testing.F) {
	id := PayloadID("", []byte("x"))
	sum := sha256.Sum256([]byte("x"))
	good, err := proto.Marshal(&messages.PayloadRecord{Size: 1, Digest: sum[:], Inline: []byte("x")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, []byte{})
	f.Add([]byte{0x10, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x28, 2}, []byte("chunk"))
	db := memory(f)
	f.Fuzz(func(t *testing.T, head, chunk []byte) {
		err := db.Update(func(txn store.Txn) error {
			if err := txn.Put(headKey(id), store.Seal(Version, headKey(id), head)); err != nil {
				return err
			}
			return txn.Put(chunkKey(id, 0), store.Seal(Version, chunkKey(id, 0), chunk))
		})
		if err != nil {
			t.Skip(err)
		}
		_ = db.View(func(txn store.Txn) error {
			_, data, err := Payload(txn, id)
			if err == nil && int64(len(data)) > int64(len(head)+len(chunk)) {
				t.Errorf("%d bytes out of %d", len(data), len(head)+len(chunk))
			}
			return nil
		})
	})
}
