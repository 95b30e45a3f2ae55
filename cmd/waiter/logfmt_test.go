package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
)

func TestRecords(t *testing.T) {
	for line, want := range map[string]string{
		`time=2026-11-30T14:28:18Z level=INFO msg="layer is ready" took=1ms`: `{"time":"2026-11-30T14:28:18Z","level":"INFO","msg":"layer is ready","took":"1ms"}`,
		`msg="a \"b\"\nc=d" "odd key"=1 empty=`:                              `{"msg":"a \"b\"\nc=d","odd key":"1","empty":""}`,
		`{"msg":"as it is"}`:                                                 `{"msg":"as it is"}`,
		`panic: all is lost`:                                                 `{"msg":"panic: all is lost"}`,
		`a=1 b`:                                                              `{"msg":"a=1 b"}`,
		`a="open`:                                                            `{"msg":"a=\"open"}`,
		`a="x"y=1`:                                                           `{"msg":"a=\"x\"y=1"}`,
		``:                                                                   `{"msg":""}`,
		`{broken`:                                                            `{"msg":"{broken"}`,
	} {
		if got := record(line); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", line, got, want)
		}
	}
}

func TestRecordsTakeAnyPieces(t *testing.T) {
	var text, out bytes.Buffer
	slog.New(slog.NewTextHandler(&text, nil)).Info("it's ready", "kinds", "a b", "n", 3)
	r := &records{w: &out}
	for b := append(text.Bytes(), "a=1\nunfinished"...); len(b) > 0; b = b[1:] {
		if n, err := r.Write(b[:1]); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	first, rest, _ := strings.Cut(out.String(), "\n")
	var got map[string]string
	if err := json.Unmarshal([]byte(first), &got); err != nil || got["msg"] != "it's ready" || got["kinds"] != "a b" || got["n"] != "3" {
		t.Errorf("%s: %v", first, err)
	}
	if rest != "{\"a\":\"1\"}\n" {
		t.Errorf("%q", rest)
	}
}

func FuzzRecord(f *testing.F) {
	for _, s := range []string{`a=1 b="c d"`, `{"a":1}`, `"k"="v"`, `=`, "\xff=\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.Contains(line, "\n") {
			t.Skip("a line has no end in it")
		}
		if got := record(line); !json.Valid([]byte(got)) || strings.Contains(got, "\n") {
			t.Errorf("%q became %q", line, got)
		}
	})
}
