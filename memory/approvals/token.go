package approvals

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"homeagent/memory/store"
	"homeagent/messages"
)

// Hash is the SHA-256 of a token: what is kept in its place.
type Hash [sha256.Size]byte

// Token is one named token as it is kept.
type Token struct {
	Hash   Hash
	Record *messages.TokenRecord
}

// ExpiredBy reports whether the token has stopped to work at a time in Unix microseconds UTC.
func (t Token) ExpiredBy(us int64) bool {
	return t.Record.GetExpiresUs() != 0 && t.Record.GetExpiresUs() <= us
}

var tokenName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// ValidName reports whether a token may have the name: 1 to 32 lower-case letters, digits and hyphens that start and end
// with a letter or digit.
func ValidName(name string) bool { return tokenName.MatchString(name) }

func tokenKey(h Hash) []byte { return store.Token.Key(h[:]) }

// PutToken makes the write of a token.
func PutToken(t Token) (*messages.LedgerOp, error) {
	if !ValidName(t.Record.GetName()) || t.Record.GetPrincipal().GetId() == "" {
		return nil, fmt.Errorf("%w: token %q", ErrInvalid, t.Record.GetName())
	}
	record, err := store.EncodeRecord(version, tokenKey(t.Hash), t.Record)
	if err != nil {
		return nil, err
	}
	return write(store.Token, t.Hash[:], record), nil
}

// DeleteToken makes the write that forgets a token; one that is not there is no error.
func DeleteToken(h Hash) *messages.LedgerOp { return write(store.Token, h[:], nil) }

// DecodeToken decodes a stored token; key is the full key with the space byte. What does not fit is store.ErrRecord.
func DecodeToken(key, record []byte) (Token, error) {
	out := Token{Record: &messages.TokenRecord{}}
	if err := store.DecodeRecord(version, key, record, out.Record); err != nil {
		return Token{}, err
	}
	if len(key) != 1+len(out.Hash) || !ValidName(out.Record.GetName()) || out.Record.GetPrincipal().GetId() == "" {
		return Token{}, fmt.Errorf("%w: token %q", store.ErrRecord, out.Record.GetName())
	}
	copy(out.Hash[:], key[1:])
	return out, nil
}

// Token returns the token of a hash, expired or not, or ErrNotFound.
func (e *Engine) Token(h Hash) (out Token, err error) {
	err = e.db.View(func(txn store.Txn) error {
		record, err := txn.Get(tokenKey(h))
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("%w: token", ErrNotFound)
		}
		if err != nil {
			return err
		}
		out, err = DecodeToken(tokenKey(h), record)
		return err
	})
	return out, err
}

// Tokens returns all tokens, sorted by name. damaged counts the records that do not decode: their tokens work no more.
func (e *Engine) Tokens() (list []Token, damaged int, err error) {
	err = e.db.View(func(txn store.Txn) error {
		for item, err := range txn.Scan(store.Range{Space: store.Token}) {
			if err != nil {
				return err
			}
			record, err := item.Value()
			if err != nil {
				return err
			}
			t, err := DecodeToken(item.FullKey(), record)
			if err != nil {
				damaged++
				continue
			}
			list = append(list, t)
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("list tokens: %w", err)
	}
	slices.SortFunc(list, func(a, b Token) int { return strings.Compare(a.Record.GetName(), b.Record.GetName()) })
	return list, damaged, nil
}
