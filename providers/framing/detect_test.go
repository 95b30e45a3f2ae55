package framing_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"homeagent/providers/framing"
	"homeagent/providers/replay"
)

func TestDetect(t *testing.T) {
	aws := string(replay.Message(replay.TextHeader(":event-type", "x"), []byte(`{}`)))
	for _, c := range []struct {
		declared framing.Kind
		media    string
		body     string
		want     framing.Kind
	}{
		{framing.SSE, "text/event-stream", "data: {}\n\n", framing.SSE},
		{framing.SSE, "text/event-stream", `{"error":"x"}`, framing.JSON},
		{framing.SSE, "text/event-stream", "\n\n [1]", framing.JSON},
		{framing.SSE, "", `{"error":"x"}`, framing.JSON},
		{framing.SSE, "text/plain", "data: {}\n\n", framing.SSE},
		{framing.SSE, "application/json", "data: {}\n\n", framing.SSE},
		{framing.SSE, "application/json", ": comment\n\n", framing.SSE},
		{framing.SSE, "application/json", "event: x\n", framing.SSE},
		{framing.SSE, "application/json", "retry: 5\n", framing.SSE},
		{framing.SSE, "application/json", "\xef\xbb\xbf\ndata: 1\n", framing.SSE},
		{framing.SSE, "application/json", "data", framing.JSON},
		{framing.SSE, "application/json", `"data: x"`, framing.JSON},
		{framing.SSE, "application/json", `5`, framing.JSON},
		{framing.SSE, "application/json", "\xef\xbb\xbf{}", framing.JSON},
		{framing.SSE, "application/x-ndjson", "{}\n", framing.NDJSON},
		{framing.SSE, "application/x-ndjson", "data: {}\n", framing.SSE},
		{framing.NDJSON, "", "{}\n{}\n", framing.NDJSON},
		{framing.NDJSON, "text/event-stream", "{}\n{}\n", framing.NDJSON},
		{framing.NDJSON, "application/json", "{}", framing.JSON},
		{framing.EventStream, "", aws, framing.EventStream},
		{framing.EventStream, "", `{"message":"x"}`, framing.JSON},
		{framing.SSE, "application/octet-stream", aws, framing.EventStream},
		{framing.JSON, "application/json", aws, framing.EventStream},
		{framing.SSE, "text/event-stream", "", framing.SSE},
		{framing.SSE, "text/event-stream", strings.Repeat(" ", 2000) + "{", framing.SSE},
		{framing.SSE, "text/event-stream", "\xef\xbb", framing.SSE},
		{framing.EventStream, "", "\x00\x00\x00\x10\x00\x00\x00\x00bad!", framing.EventStream},
	} {
		for _, src := range []io.Reader{strings.NewReader(c.body), iotest.OneByteReader(strings.NewReader(c.body))} {
			r := bufio.NewReader(src)
			got, err := framing.Detect(c.declared, c.media, r)
			if err != nil || got != c.want {
				t.Errorf("%s, %q, %q: %s, %v, want %s", c.declared, c.media, c.body, got, err, c.want)
			}
			rest, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(rest, []byte(c.body)) {
				t.Errorf("%q: %q is left, %v", c.body, rest, err)
			}
		}
	}
	for _, page := range []string{"<!doctype html>", " \n<html>", "\xef\xbb\xbf<html>"} {
		if _, err := framing.Detect(framing.SSE, "text/html", bufio.NewReader(strings.NewReader(page))); !errors.Is(err, framing.ErrPage) {
			t.Errorf("%q: %v", page, err)
		}
	}
	broken := errors.New("broken")
	r := bufio.NewReader(io.MultiReader(strings.NewReader(" "), iotest.ErrReader(broken)))
	if k, err := framing.Detect(framing.SSE, "", r); k != framing.SSE || err != nil {
		t.Errorf("%s, %v", k, err)
	}
	if _, err := io.ReadAll(r); !errors.Is(err, broken) {
		t.Errorf("the body's error is lost: %v", err)
	}
}
