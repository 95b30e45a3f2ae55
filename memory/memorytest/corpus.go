package memorytest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"homeagent/messages"
)

// Corpus is one conversation with questions about it.
type Corpus struct {
	// Name of the conversation or person.
	Name string
	// Events in order of time; the ids are the labels of the data set.
	Events []*messages.Event
	// Questions with the ids of the events that hold the answer.
	Questions []Question
}

// Question about a conversation.
type Question struct {
	// Text of the question.
	Text string
	// Evidence holds event ids; never empty.
	Evidence []string
	// Category of the data set; zero when it has none.
	Category int
}

// DataSets is the variable that names the folder with public data sets; they are
// no part of the repository. Here the folder memory in it is read.
const DataSets = "HOMEAGENT_DATASETS"

// dir is where the labelled conversations are. Without them the test is skipped;
// where they are said to be, they have to be.
func dir(t testing.TB) string {
	t.Helper()
	sets := os.Getenv(DataSets)
	if sets == "" {
		t.Skip(DataSets + " names no folder of data sets")
	}
	return filepath.Join(sets, "memory")
}

func load(t testing.TB, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir(t), name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// event makes an event of the given text.
func event(id, conversation, speaker, text string, kind messages.EventKind, at time.Time) *messages.Event {
	who := &messages.Principal{Id: strings.ToLower(speaker), Name: speaker, Kind: messages.PrincipalKind_PRINCIPAL_KIND_PERSON}
	return &messages.Event{
		EventId: id, Kind: kind, Agent: "main", Conversation: conversation, Principal: who, AtUs: at.UnixMicro(),
		Taint: messages.Taint_TAINT_TRUSTED,
		Blocks: []*messages.Block{{
			BlockId: id + "-0", Content: &messages.Part{Content: &messages.Part_Text{Text: text}}, CreatedUs: at.UnixMicro(),
		}},
	}
}

type locomoTurn struct {
	Speaker string `json:"speaker"`
	ID      string `json:"dia_id"`
	Text    string `json:"text"`
	Caption string `json:"blip_caption"`
}

type locomoSample struct {
	QA []struct {
		Question string   `json:"question"`
		Evidence []string `json:"evidence"`
		Category int      `json:"category"`
	} `json:"qa"`
	Conversation map[string]json.RawMessage `json:"conversation"`
	ID           string                     `json:"sample_id"`
}

// LoCoMo returns the LoCoMo conversations, or skips the test.
func LoCoMo(t testing.TB) []Corpus {
	t.Helper()
	var samples []locomoSample
	load(t, "locomo-a.json", &samples)
	var out []Corpus
	for _, s := range samples {
		c := Corpus{Name: s.ID, Events: locomoEvents(t, &s)}
		known := map[string]bool{}
		for _, e := range c.Events {
			known[e.GetEventId()] = true
		}
		for _, q := range s.QA {
			if ids := evidence(q.Evidence, known); len(ids) > 0 {
				c.Questions = append(c.Questions, Question{Text: q.Question, Evidence: ids, Category: q.Category})
			}
		}
		if len(c.Questions) == 0 || len(c.Events) == 0 {
			t.Fatalf("%s has %d questions, %d events", c.Name, len(c.Questions), len(c.Events))
		}
		out = append(out, c)
	}
	return out
}

func locomoEvents(t testing.TB, s *locomoSample) []*messages.Event {
	t.Helper()
	var out []*messages.Event
	for n := 1; ; n++ {
		raw, ok := s.Conversation[fmt.Sprint("session_", n)]
		if !ok {
			if n > 1 {
				return out
			}
			t.Fatalf("%s has no session", s.ID)
		}
		var turns []locomoTurn
		if err := json.Unmarshal(raw, &turns); err != nil {
			t.Fatal(err)
		}
		var date string
		if err := json.Unmarshal(s.Conversation[fmt.Sprint("session_", n, "_date_time")], &date); err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse("3:04 pm on 2 January, 2006", date)
		if err != nil {
			t.Fatal(err)
		}
		for i, turn := range turns {
			text := turn.Text
			if turn.Caption != "" {
				text += " [" + turn.Caption + "]"
			}
			out = append(out, event(turn.ID, s.ID, turn.Speaker, text, messages.EventKind_EVENT_KIND_INPUT, at.Add(time.Duration(i)*time.Minute)))
		}
	}
}

var dialogID = regexp.MustCompile(`D:?(\d+):0*(\d+)`)

// evidence makes the labels uniform: several in one string, leading zeros, "D:11:26".
func evidence(labels []string, known map[string]bool) []string {
	var out []string
	for _, l := range labels {
		for _, m := range dialogID.FindAllStringSubmatch(l, -1) {
			n, err := strconv.Atoi(m[1])
			if id := fmt.Sprintf("D%d:%s", n, m[2]); err == nil && known[id] {
				out = append(out, id)
			}
		}
	}
	return out
}

// MemoryBank returns the Chinese conversations, or skips the test. Each exchange
// is two events, the person's and the agent's; the evidence of a question is the
// id of the person's.
func MemoryBank(t testing.TB) []Corpus {
	t.Helper()
	var users map[string]struct {
		History map[string][]struct {
			Query    string `json:"query"`
			Response string `json:"response"`
		} `json:"history"`
	}
	load(t, "memorybank-cn-a.json", &users)
	var labels []struct {
		User      string `json:"user"`
		Questions []struct {
			Q        string `json:"q"`
			Evidence []int  `json:"evidence_exchange_index"`
		} `json:"questions"`
	}
	load(t, "memorybank-cn-a-evidence.json", &labels)
	var out []Corpus
	for _, l := range labels {
		c := Corpus{Name: l.User}
		days := make([]string, 0, len(users[l.User].History))
		for d := range users[l.User].History {
			days = append(days, d)
		}
		sort.Strings(days)
		n := 0
		for _, day := range days {
			at, err := time.Parse("2006-01-02", day)
			if err != nil {
				t.Fatal(err)
			}
			for i, x := range users[l.User].History[day] {
				when := at.Add(8*time.Hour + time.Duration(i)*time.Minute)
				c.Events = append(c.Events,
					event(fmt.Sprint("X", n), l.User, "", x.Query, messages.EventKind_EVENT_KIND_INPUT, when),
					event(fmt.Sprint("X", n, "r"), l.User, "", x.Response, messages.EventKind_EVENT_KIND_RESPONSE, when.Add(time.Second)))
				n++
			}
		}
		for _, q := range l.Questions {
			if len(q.Evidence) == 0 {
				continue
			}
			var ids []string
			for _, i := range q.Evidence {
				ids = append(ids, fmt.Sprint("X", i))
			}
			c.Questions = append(c.Questions, Question{Text: q.Q, Evidence: ids})
		}
		if len(c.Events) == 0 || len(c.Questions) == 0 {
			t.Fatalf("%s has %d questions, %d events", c.Name, len(c.Questions), len(c.Events))
		}
		out = append(out, c)
	}
	return out
}

// Recall returns the mean evidence recall: for each question the share of its
// evidence among the first k found, averaged over the questions.
func Recall(t testing.TB, list []Corpus, k int, find func(c int, question string) []string) float64 {
	t.Helper()
	sum, n := 0.0, 0
	for i := range list {
		for _, q := range list[i].Questions {
			got := find(i, q.Text)
			got = got[:min(k, len(got))]
			hit := 0
			for _, want := range q.Evidence {
				for _, g := range got {
					if g == want || g == want+"r" && strings.HasPrefix(want, "X") {
						hit++
						break
					}
				}
			}
			sum += float64(hit) / float64(len(q.Evidence))
			n++
		}
	}
	if n == 0 {
		t.Fatal("no questions")
	}
	return 100 * sum / float64(n)
}
