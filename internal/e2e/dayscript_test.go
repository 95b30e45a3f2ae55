package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"homeagent/providers/providertest"
)

// The texts of a day name errands: "Do #a1-2." asks for one, "Done #a1-2." answers it. Who reads the answer of another
// agent in an input says "Heard #a1-2."
var (
	errand = regexp.MustCompile(`Do (#[a-z0-9-]+)\.`)
	done   = regexp.MustCompile(`Done (#[a-z0-9-]+)\.`)
	heard  = regexp.MustCompile(`Heard (#[a-z0-9-]+)\.`)
)

// script is the model of a day. What it answers follows from the prompt alone: which errands of it are not answered yet,
// and which calls of those have results. So a turn that was disturbed asks for the same as one that was not.
type script struct {
	mu sync.Mutex
	// errands are the rounds of calls of each.
	errands map[string][][]providertest.Tool
	// results are how calls ended, by their ids, as the model was last told: "ok" or the reason of the failure.
	results map[string]string
	// faults are prompts that no vendor would take.
	faults []string
	asked  int
	dice   *rand.Rand
}

func newScript(seed uint64) *script {
	return &script{
		errands: map[string][][]providertest.Tool{}, results: map[string]string{}, dice: rand.New(rand.NewPCG(seed, 1)),
	}
}

// learn makes an errand known; its calls get their ids by their order.
func (s *script) learn(name string, rounds [][]providertest.Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, round := range rounds {
		for i := range round {
			n++
			round[i].ID = fmt.Sprintf("%s/%d", name, n)
		}
	}
	s.errands[name] = rounds
}

func tool(name, format string, args ...any) providertest.Tool {
	return providertest.Tool{Name: name, Args: json.RawMessage(fmt.Sprintf(format, args...))}
}

// answer is what the model says.
func (s *script) answer(q providertest.Question) providertest.Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if fault := unpaired(q.Messages); fault != "" {
		s.faults = append(s.faults, fault)
	}
	open, told := s.read(q.Messages)
	step := providertest.Step{Delay: providertest.Duration(time.Duration(s.dice.IntN(8)) * time.Millisecond)}
	for _, name := range open {
		if len(q.Tools) == 0 {
			break // it is to answer without
		}
		for _, round := range s.errands[name] {
			if slices.ContainsFunc(round, func(c providertest.Tool) bool { return !told[c.ID] }) {
				step.Tools = round
				return step
			}
		}
	}
	step.Text = []string{"Well: "}
	for _, name := range open {
		verb := "Done"
		if strings.HasPrefix(name, "~") {
			verb, name = "Heard", name[1:]
		}
		step.Text = append(step.Text, verb, " "+name+". ")
	}
	return step
}

// read gives the errands of a prompt that are not answered, those of others with a tilde, and the calls with results.
func (s *script) read(prompt []providertest.Said) (open []string, told map[string]bool) {
	told = map[string]bool{}
	add := func(name string) {
		if !slices.Contains(open, name) {
			open = append(open, name)
		}
	}
	drop := func(name string) { open = slices.DeleteFunc(open, func(o string) bool { return o == name }) }
	for _, m := range prompt {
		switch m.Role {
		case "user":
			for _, f := range errand.FindAllStringSubmatch(m.Text, -1) {
				add(f[1])
			}
			for _, f := range done.FindAllStringSubmatch(m.Text, -1) {
				add("~" + f[1])
			}
		case "assistant":
			for _, f := range done.FindAllStringSubmatch(m.Text, -1) {
				drop(f[1])
			}
			for _, f := range heard.FindAllStringSubmatch(m.Text, -1) {
				drop("~" + f[1])
			}
		case "tool":
			told[m.ID] = true
			s.results[m.ID] = outcome(m.Text)
		}
	}
	return open, told
}

// outcome of a call by what the model is told.
func outcome(text string) string {
	var failed struct {
		Error *struct{ Reason string }
	}
	if json.Unmarshal([]byte(text), &failed) == nil && failed.Error != nil {
		return failed.Error.Reason
	}
	return "ok"
}

// unpaired says what is wrong with calls and results of a prompt: each assistant message with calls must be followed by
// the results of just those, in any order, before anything else.
func unpaired(prompt []providertest.Said) string {
	var due []string
	for i, m := range prompt {
		if m.Role == "tool" {
			at := slices.Index(due, m.ID)
			if at < 0 {
				return fmt.Sprintf("message %d is a result of %q, which nothing asked for", i, m.ID)
			}
			due = slices.Delete(due, at, at+1)
			continue
		}
		if len(due) > 0 {
			return fmt.Sprintf("message %d comes before the results of %v", i, due)
		}
		for _, c := range m.Calls {
			due = append(due, c.ID)
		}
	}
	if len(due) > 0 {
		return fmt.Sprintf("the prompt ends without the results of %v", due)
	}
	return ""
}
