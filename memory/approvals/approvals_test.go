package approvals

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"homeagent/memory/ledger"
	"homeagent/memory/store"
	"homeagent/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is the engine over a store that is written as a node does: by the ledger.
type rig struct {
	t  *testing.T
	db *store.DB
	l  *ledger.Ledger
	*Engine
}

func newRig(t *testing.T, dir string) *rig {
	t.Helper()
	db, err := store.Open(dir, store.Options{InMemory: dir == "", Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	l, err := ledger.Open(db, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, db, l, New(db)}
}

func (r *rig) do(ops ...*messages.LedgerOp) {
	r.t.Helper()
	done := r.l.Execute(time.Unix(1000, 0), []*messages.LedgerExecute{{Ops: ops, Sync: true}})
	if err := done[0].GetError(); err != nil {
		r.t.Fatal(err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func sample(n int, state messages.ApprovalState) *messages.Approval {
	return &messages.Approval{
		ApprovalId: fmt.Sprintf("ap-%d", n), TaskId: "T1", Agent: "main", Hash: "h", CreatedUs: int64(100 - n), State: state,
		Call: &messages.ToolInvocation{CallId: fmt.Sprintf("T1/1/c%d", n), Name: "shell", ArgumentsJson: []byte(`{"a":1}`)},
	}
}

func TestApprovals(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, dir)
	pending, allowed := messages.ApprovalState_APPROVAL_STATE_PENDING, messages.ApprovalState_APPROVAL_STATE_ALLOWED
	r.do(must(Put(sample(1, pending))), must(Put(sample(2, pending))), must(Put(sample(3, allowed))))
	r.do(must(Put(sample(1, pending)))) // twice does no harm
	next := sample(2, allowed)
	next.Note = "go"
	r.do(must(Put(next)))
	if err := r.db.Close(); err != nil {
		t.Fatal(err)
	}

	r = newRig(t, dir)
	list, damaged, err := r.List(nil)
	if err != nil || len(damaged) != 0 || len(list) != 3 {
		t.Fatalf("list %v, %v, %v", list, damaged, err)
	}
	for i, id := range []string{"ap-3", "ap-2", "ap-1"} { // the oldest first
		if list[i].GetApprovalId() != id {
			t.Errorf("place %d has %s", i, list[i].GetApprovalId())
		}
	}
	some, _, err := r.List(func(a *messages.Approval) bool { return a.GetState() == pending })
	if err != nil || len(some) != 1 || some[0].GetApprovalId() != "ap-1" {
		t.Errorf("pending %v, %v", some, err)
	}
	got, err := r.Get("ap-2")
	if err != nil || !proto.Equal(got, next) {
		t.Errorf("got %v, %v", got, err)
	}
	r.do(must(Delete("ap-2")), must(Delete("ap-9")))
	for _, id := range []string{"ap-2", "", "a\x00b", strings.Repeat("x", maxID+1)} {
		if _, err := r.Get(id); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestWhatCannotBeKept(t *testing.T) {
	for name, change := range map[string]func(*messages.Approval){
		"no id":     func(a *messages.Approval) { a.ApprovalId = "" },
		"zero byte": func(a *messages.Approval) { a.ApprovalId = "a\x00" },
		"long id":   func(a *messages.Approval) { a.ApprovalId = strings.Repeat("x", maxID+1) },
		"too large": func(a *messages.Approval) { a.Call.ArgumentsJson = make([]byte, MaxRecord) },
	} {
		a := sample(1, 0)
		change(a)
		if _, err := Put(a); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Delete(""); !errors.Is(err, ErrInvalid) {
		t.Errorf("delete without an id: %v", err)
	}
	// The largest one that may be kept fits into the store.
	a := sample(1, 0)
	a.Call.ArgumentsJson = make([]byte, MaxRecord-200)
	newRig(t, "").do(must(Put(a)))
}

func TestTokens(t *testing.T) {
	r := newRig(t, "")
	named := func(name string, expires int64) Token {
		return Token{hashOf("secret of " + name), &messages.TokenRecord{
			Name: name, Principal: &messages.Principal{Id: "token:" + name}, ExpiresUs: expires,
		}}
	}
	r.do(must(PutToken(named("cron", 0))), must(PutToken(named("anna", 5000))))
	got, err := r.Token(hashOf("secret of anna"))
	if err != nil || got.Record.GetName() != "anna" || got.Hash != hashOf("secret of anna") {
		t.Fatalf("got %v, %v", got, err)
	}
	if got.ExpiredBy(4999) || !got.ExpiredBy(5000) || must(r.Token(hashOf("secret of cron"))).ExpiredBy(1<<62) {
		t.Error("expiry is not kept to")
	}
	list, damaged, err := r.Tokens()
	if err != nil || damaged != 0 || len(list) != 2 || list[0].Record.GetName() != "anna" || list[1].Record.GetName() != "cron" {
		t.Errorf("list %v, %d, %v", list, damaged, err)
	}
	r.do(DeleteToken(hashOf("secret of anna")), DeleteToken(hashOf("never there")))
	if _, err := r.Token(hashOf("secret of anna")); !errors.Is(err, ErrNotFound) {
		t.Errorf("a removed token: %v", err)
	}
	for _, name := range []string{"", "A", "-a", "a-", "a b", "ä", strings.Repeat("a", 33), "a\n"} {
		if _, err := PutToken(named(name, 0)); !errors.Is(err, ErrInvalid) || ValidName(name) {
			t.Errorf("the name %q is taken", name)
		}
	}
	for _, name := range []string{"a", "a-1", strings.Repeat("a", 32)} {
		if !ValidName(name) {
			t.Errorf("the name %q is refused", name)
		}
	}
	if _, err := PutToken(Token{Record: &messages.TokenRecord{Name: "a"}}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a token of nobody: %v", err)
	}
}

// TestTheTokenIsNotKept looks for it in every record of the store.
func TestTheTokenIsNotKept(t *testing.T) {
	r := newRig(t, "")
	const secret = "homed_a-canary-that-must-not-be-found"
	r.do(must(PutToken(Token{hashOf(secret), &messages.TokenRecord{Name: "cron", Principal: &messages.Principal{Id: "token:cron"}}})))
	found := false
	err := r.db.View(func(txn store.Txn) error {
		for _, space := range store.Spaces() {
			for item, err := range txn.Scan(store.Range{Space: space.Space}) {
				if err != nil {
					return err
				}
				b, err := item.Value()
				if err != nil {
					return err
				}
				if bytes.Contains(append(bytes.Clone(item.FullKey()), b...), []byte(secret)) {
					t.Errorf("the space %s holds the token", space.Name)
				}
				found = found || bytes.Contains(b, []byte("token:cron"))
			}
		}
		return nil
	})
	if err != nil || !found {
		t.Errorf("the record of the token was not looked at: %v", err)
	}
}

func TestDamage(t *testing.T) {
	r := newRig(t, "")
	r.do(must(Put(sample(1, 1))), must(Put(sample(2, 1))), must(PutToken(Token{hashOf("x"), &messages.TokenRecord{Name: "x", Principal: &messages.Principal{Id: "token:x"}}})))
	spoil := func(key []byte) {
		t.Helper()
		if err := r.db.Update(func(txn store.Txn) error {
			b, err := txn.Get(key)
			if err != nil {
				return err
			}
			b[len(b)-1] ^= 1
			return txn.Put(key, b)
		}); err != nil {
			t.Fatal(err)
		}
	}
	spoil(approvalKey("ap-1"))
	spoil(tokenKey(hashOf("x")))
	list, damaged, err := r.List(nil)
	if err != nil || len(list) != 1 || len(damaged) != 1 || !strings.Contains(damaged[0], "ap-1") {
		t.Errorf("list %v, %q, %v", list, damaged, err)
	}
	if _, err := r.Get("ap-1"); !errors.Is(err, store.ErrRecord) {
		t.Errorf("get: %v", err)
	}
	if _, err := r.Token(hashOf("x")); !errors.Is(err, store.ErrRecord) {
		t.Errorf("token: %v", err)
	}
	if list, n, err := r.Tokens(); err != nil || n != 1 || len(list) != 0 {
		t.Errorf("tokens %v, %d, %v", list, n, err)
	}
}

// value is what an operation writes.
func value(op *messages.LedgerOp) []byte { return op.GetWrite().GetValue() }

func FuzzDecodeApproval(f *testing.F) {
	good := value(must(Put(sample(1, 1))))
	f.Add("ap-1", good)
	f.Add("ap-2", good)
	f.Add("", []byte{})
	f.Add("ap-1", good[:len(good)-1])
	f.Add("ap-1", store.Seal(version, approvalKey("ap-1"), []byte{0xff}))
	f.Add("ap-1", store.Seal(version+1, approvalKey("ap-1"), nil))
	f.Fuzz(func(t *testing.T, id string, record []byte) {
		a, err := DecodeApproval(approvalKey(id), record)
		if err != nil {
			if !errors.Is(err, store.ErrRecord) || a != nil {
				t.Fatalf("%v, %v", a, err)
			}
			return
		}
		if a.GetApprovalId() != id || id == "" {
			t.Fatalf("%q under %q", a.GetApprovalId(), id)
		}
	})
}

func FuzzDecodeToken(f *testing.F) {
	h := hashOf("x")
	good := value(must(PutToken(Token{h, &messages.TokenRecord{Name: "x", Principal: &messages.Principal{Id: "token:x"}}})))
	f.Add(h[:], good)
	f.Add(h[:5], good)
	f.Add(h[:], store.Seal(version, tokenKey(h), nil))
	f.Add([]byte{}, []byte{1, 2, 3, 4, 5})
	f.Fuzz(func(t *testing.T, key, record []byte) {
		tok, err := DecodeToken(store.Token.Key(key), record)
		if err != nil {
			if !errors.Is(err, store.ErrRecord) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(tok.Hash[:], key) || !ValidName(tok.Record.GetName()) || tok.Record.GetPrincipal().GetId() == "" {
			t.Fatalf("token %v", tok)
		}
	})
}

func hashOf(token string) Hash { return sha256.Sum256([]byte(token)) }
