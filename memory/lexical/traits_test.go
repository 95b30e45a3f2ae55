package lexical

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"homeagent/messages"
)

func TestTraits(t *testing.T) {
	for text, want := range map[string]traits{
		"":                        0,
		"What do you think?":      traitAsks,
		"Hey Mel, how are you?":   traitAsks,
		"I moved. And you?":       traitAsksToo,
		"We went there yesterday": traitTime,
		"I have three dogs":       traitNumber,
		"since 2019":              traitTime | traitNumber,
		"今天我在图书馆里学习的时候发现了一本好看的小说，你听说过吗？": traitAsksToo | traitTime | traitNumber,
		"你喜欢吗":   traitAsks,
		"上周去了厦门": traitTime,
		"thanks": 0,
	} {
		if got := traitsOf(text); got != want {
			t.Errorf("%q: %04b, want %04b", text, got, want)
		}
	}
}

func TestCues(t *testing.T) {
	for text, want := range map[string][3]bool{
		"When did Ann move?":          {true, false, true},
		"what day was it":             {true, false, true},
		"How many dogs are there?":    {false, true, true},
		"the day when I was there":    {true, false, false},
		"我哪天去的厦门":                     {true, false, true},
		"你有多少本书":                      {false, true, true},
		"I bought a bicycle":          {},
		"tell me about the bicycle":   {false, false, true},
		"bicycle shed":                {},
		"今天天气不错":                      {},
		"What's the name of the cat?": {false, false, true},
	} {
		q := ParseQuery(text)
		if got := [3]bool{q.When, q.Count, q.Asks}; got != want {
			t.Errorf("%q: when, count, asks %v, want %v", text, got, want)
		}
	}
}

func TestNamesAndSymbols(t *testing.T) {
	for text, want := range map[string][2]string{
		"Where did Caroline meet Ann's dog?": {"ann carolin", ""},
		"WHEN ARE MY SISTERS' BIRTHDAYS":     {"", ""},
		"where is 192.168.1.10":              {"1 10 168 192 192.168.1.10", "192.168.1.10"},
		"what is max_tokens in Claude":       {"claud max max_tokens token", "max_tokens"},
		"the 3rd of May 2024":                {"", ""},
		"error 4711":                         {"4711", "4711"},
		"我的iPhone在哪里":                        {"iphon", ""},
		"Bicycles. Sheds":                    {"", ""},
	} {
		var names, symbols []string
		for _, q := range ParseQuery(text).Terms {
			if q.Name {
				names = append(names, q.Text)
			}
			if q.Exact {
				symbols = append(symbols, q.Text)
			}
		}
		slices.Sort(names)
		if got := [2]string{strings.Join(names, " "), strings.Join(symbols, " ")}; got != want {
			t.Errorf("%q: names and symbols %q, want %q", text, got, want)
		}
	}
}

func TestDatesIn(t *testing.T) {
	for text, want := range map[string][]date{
		"what happened on 3 May 2024?":    {{2024, 5, 3}},
		"on May 3rd, 2024":                {{2024, 5, 3}},
		"what did I do on the 3rd of May": {{0, 5, 3}},
		"in August 2023":                  {{2023, 8, 0}},
		"since September":                 {{0, 9, 0}},
		"it may rain in march":            {{0, 3, 0}},
		"you may go":                      nil,
		"2024-05-03 and 2024/6/7":         {{2024, 5, 3}, {2024, 6, 7}},
		"我在5月2日去了博物馆":                     {{0, 5, 2}},
		"2023年12月":                        {{2023, 12, 0}},
		"五月二十一号":                          {{0, 5, 21}},
		"十二月三十日":                          {{0, 12, 30}},
		"13月40日":                          nil,
		"2024-13-01":                      nil,
	} {
		got, spelt := datesIn(text)
		if !slices.Equal(got, want) || (len(spelt) > 0) != (len(want) > 0) {
			t.Errorf("%q: %v spelt %v, want %v", text, got, slices.Sorted(maps.Keys(spelt)), want)
		}
	}
	day := time.Date(2024, 5, 3, 23, 0, 0, 0, time.UTC)
	for _, d := range []date{{2024, 5, 3}, {0, 5, 3}, {2024, 5, 0}} {
		if !d.holds(day) {
			t.Errorf("%v is not %v", d, day)
		}
	}
	if (date{0, 5, 3}).holds(day.In(time.FixedZone("east", 2*3600))) {
		t.Error("a date is that of the person's zone")
	}
}

// What is said on a date that a question names, who is named, and answers to questions come first.
func TestSignsDecide(t *testing.T) {
	db, x := openStore(t), &Index{}
	ann, bob := said("A", "a", "the harvest was good", noon), said("B", "b", "the harvest was good", noon)
	ann.Principal, bob.Principal = person("Ann"), person("Bob")
	index(t, db, x, ann, bob,
		said("D1", "d1", "a walk along the river", noon.AddDate(0, 0, -30)), said("D2", "d2", "a walk along the river", noon.AddDate(0, 0, -60)),
		said("Q1", "q", "how is the telescope doing?", noon), said("Q2", "q", "broken again", noon.Add(time.Minute)))
	for ask, want := range map[string]string{
		"what did Ann say of the harvest":     "A",
		"what did Bob say of the harvest":     "B",
		"the walk along the river in April":   "D1",
		"the walk along the river on 3 March": "D2",
		"telescope":                           "Q2",
	} {
		if hits := search(t, db, x, ask, Search{Agent: "main"}); len(hits) == 0 || hits[0].Event != want {
			t.Errorf("%q: %s, want %s first", ask, found(hits), want)
		}
	}
}

func person(name string) *messages.Principal {
	return &messages.Principal{Id: name, Name: name, Kind: messages.PrincipalKind_PRINCIPAL_KIND_PERSON}
}
