package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const talk = `[{"sample_id": "one", "conversation": {
  "session_1_date_time": "1:56 pm on 8 May, 2023",
  "session_1": [
    {"speaker": "Ann", "dia_id": "D1:1", "text": "I adopted a greyhound called Comet"},
    {"speaker": "Bob", "dia_id": "D1:2", "text": "Lovely! What does he eat?"},
    {"speaker": "Ann", "dia_id": "D1:3", "text": "Mostly salmon", "blip_caption": "a photo of a bowl"}],
  "session_2_date_time": "10:00 am on 1 June, 2023",
  "session_2": [
    {"speaker": "Bob", "dia_id": "D2:1", "text": "My exhibition of watercolours opens on Friday"},
    {"speaker": "Ann", "dia_id": "D2:2", "text": "I will come"}]},
 "qa": [
  {"question": "Which dog did Ann adopt?", "answer": "a greyhound", "evidence": ["D1:1"], "category": 4},
  {"question": "What does Ann's greyhound Comet eat?", "evidence": ["D:1:03; D1:1"], "category": 1},
  {"question": "When does Bob's exhibition of watercolours open?", "evidence": ["D2:1"], "category": 2},
  {"question": "What is nowhere?", "evidence": [], "category": 5}]},
 {"sample_id": "two", "conversation": {
  "session_1_date_time": "9:00 am on 2 January, 2024",
  "session_1": [{"speaker": "Cid", "dia_id": "D1:1", "text": "The telescope arrived from Lisbon"}]},
 "qa": [{"question": "Where did Cid's telescope come from?", "evidence": ["D1:1"], "category": 4}]}]`

const bank = `{"王峰": {"name": "王峰", "history": {
  "2023-04-27": [{"query": "我喜欢徒步和攀岩", "response": "听起来很棒"}, {"query": "今天在公园慢跑了一个小时", "response": "很好"}],
  "2023-04-28": [{"query": "我买了一架望远镜", "response": "祝你看到星星"}]}}}`

const labels = `[{"user": "王峰", "questions": [
  {"q": "我在公园跑了多久？", "evidence_exchange_index": [1]}, {"q": "我买了什么望远镜", "evidence_exchange_index": [2]}]}]`

func write(t *testing.T, name, text string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// The JSON has the form that others rely on, over both shapes of files.
func TestJSON(t *testing.T) {
	var out bytes.Buffer
	err := run([]string{
		write(t, "talk.json", talk), "--json", write(t, "bank.json", bank), "--evidence", write(t, "labels.json", labels),
	}, &out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Files []struct {
			File       string
			Questions  int
			Recall     map[string]float64
			MRR        float64
			Categories map[string]score
			BM25       score
			Latency    map[string]float64 `json:"latency_ms"`
			Channels   map[string]score
		}
		Revision string
		Machine  machine
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Files) != 2 || got.Revision == "" || got.Machine.Cores == 0 {
		t.Fatalf("report %s", out.String())
	}
	talked, banked := got.Files[0], got.Files[1]
	if talked.File != "talk.json" || talked.Questions != 4 || banked.Questions != 2 {
		t.Errorf("questions: %+v, %+v", talked, banked)
	}
	for _, f := range got.Files {
		if f.Recall["5"] != 100 || f.MRR < 0.7 || f.Latency["p50"] <= 0 || f.Latency["p99"] < f.Latency["p50"] || len(f.BM25.Recall) != len(cuts) {
			t.Errorf("%s: %+v", f.File, f)
		}
		if len(f.Channels) == 0 {
			t.Errorf("%s: no channels", f.File)
		}
	}
	if c := talked.Categories; c["single-hop"].Questions != 2 || c["multi-hop"].Questions != 1 || c["multi-hop"].Recall["5"] != 100 || c["temporal"].MRR != 1 {
		t.Errorf("categories %+v", c)
	}
}

func TestTableWithAbstention(t *testing.T) {
	var out bytes.Buffer
	if err := run([]string{"--signs=false", "--abstention", write(t, "talk.json", talk)}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"talk.json: 4 questions over 6 events", "multi-hop", "plain BM25", "4 questions whose answer is there, 4 whose answer is not", "(default)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("without %q:\n%s", want, out.String())
		}
	}
}

// Without a question nothing is reported.
func TestRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want error
	}{
		"no file":      {nil, errUsage},
		"no labels":    {[]string{write(t, "bank.json", bank)}, errNothing},
		"other people": {[]string{write(t, "bank.json", bank), "--evidence", write(t, "l.json", `[{"user": "x", "questions": []}]`)}, errNothing},
		"no sessions":  {[]string{write(t, "x.json", `[{"sample_id": "x", "conversation": {}, "qa": []}]`)}, errShape},
		"no shape":     {[]string{write(t, "x.json", `{"a": 1}`)}, errShape},
		"not there":    {[]string{filepath.Join(t.TempDir(), "none")}, os.ErrNotExist},
		"a bad number": {[]string{"--abstention=x", "f"}, nil},
	} {
		var out bytes.Buffer
		err := run(c.args, &out, io.Discard)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || out.Len() > 0 {
			t.Errorf("%s: %v, printed %q", name, err, out.String())
		}
	}
}

func TestIntervals(t *testing.T) {
	var list []outcome
	for i := range 200 {
		o := outcome{}
		if i%2 == 0 {
			o.recall, o.reciprocal = [5]float64{1, 1, 1, 1, 1}, 1
		}
		list = append(list, o)
	}
	s := withIntervals(list)
	if i := s.Intervals["10"]; s.Recall["10"] != 50 || i[0] > 46 || i[0] < 40 || i[1] < 54 || i[1] > 60 {
		t.Errorf("half of 200: %v, %v", s.Recall, i)
	}
	if again := withIntervals(list); fmt.Sprint(again) != fmt.Sprint(s) {
		t.Error("another run gives other intervals")
	}
}
