package recall

import (
	"reflect"
	"testing"

	"homeagent/memory/lexical"
	"homeagent/memory/store"
)

// space reads a whole space.
func space(t *testing.T, db *store.DB, s store.Space) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := db.View(func(txn store.Txn) error {
		for item, err := range txn.Scan(store.Range{Space: s}) {
			if err != nil {
				return err
			}
			v, err := item.Value()
			if err != nil {
				return err
			}
			out[string(item.FullKey())] = string(v)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// An index of an older format, and one whose rebuilding was cut short, become what a new one is.
func TestUpgrade(t *testing.T) {
	m := open(t, "")
	m.talk("my locker number is 4711", "I will remember.", "我的猫叫小黑", "好的")
	m.say("main", "the green bicycle is at school")
	m.say("main/resident/cook", "the bicycle of the cook")
	want := space(t, m.db, store.Lexical)
	if len(want) == 0 {
		t.Fatal("nothing is indexed")
	}
	index := &lexical.Index{}
	if done, _, err := Upgrade(m.db, index); err != nil || done != 0 {
		t.Fatalf("a current index: %d indexed anew, %v", done, err)
	}
	for name, spoil := range map[string]func(store.Txn) error{
		"before formats": func(txn store.Txn) error { return txn.Delete([]byte{byte(store.Lexical), 'v'}) },
		"cut short":      func(txn store.Txn) error { return txn.Put([]byte{byte(store.Lexical), 'v'}, []byte{1}) },
	} {
		err := m.db.Update(func(txn store.Txn) error {
			if err := txn.Put([]byte{byte(store.Lexical), 'z'}, []byte("left over")); err != nil {
				return err
			}
			return spoil(txn)
		})
		if err != nil {
			t.Fatal(err)
		}
		if done, broken, err := Upgrade(m.db, index); err != nil || done != 6 || broken != 0 {
			t.Fatalf("%s: %d indexed anew, %d broken, %v", name, done, broken, err)
		}
		if got := space(t, m.db, store.Lexical); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d keys, not the %d of before, or other values", name, len(got), len(want))
		}
	}
}
