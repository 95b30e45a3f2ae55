package main

import (
	"fmt"
	"slices"
	"strings"

	"homeagent/providers"
	"homeagent/providers/lua"
	"homeagent/providers/providertest"
)

// feature is a column of the table: what an adapter can do, and which fixtures
// show it.
type feature struct {
	name string
	// able tells from the adapter's own word whether it can; nil means that all can.
	able func(providers.Info) bool
	// shows tells whether a fixture shows it.
	shows func(providertest.Entry) bool
	// test shows it in place of fixtures; may be empty.
	test string
}

func answers(shows func(e providertest.Entry) bool) func(providertest.Entry) bool {
	return func(e providertest.Entry) bool { return e.Answer != nil && shows(e) }
}

func fine(e providertest.Entry) bool { return e.Answer.Status == 200 && e.Answer.Want.Error == nil }

func asks(shows func(providertest.Message) bool) func(providertest.Entry) bool {
	return func(e providertest.Entry) bool {
		return e.Request != nil && slices.ContainsFunc(e.Request.Messages, shows)
	}
}

func requests(shows func(*providertest.Conversation) bool) func(providertest.Entry) bool {
	return func(e providertest.Entry) bool { return e.Request != nil && shows(e.Request) }
}

func counts(names ...string) func(providertest.Entry) bool {
	return answers(func(e providertest.Entry) bool {
		return slices.ContainsFunc(names, func(n string) bool { _, ok := e.Answer.Want.Usage[n]; return ok })
	})
}

var features = []feature{
	{name: "stream", shows: answers(func(e providertest.Entry) bool { return fine(e) && e.Answer.Stream() && e.Answer.Want.Text != "" })},
	{name: "whole answer", shows: answers(func(e providertest.Entry) bool { return fine(e) && !e.Answer.Stream() })},
	{name: "system", shows: asks(func(m providertest.Message) bool { return m.Role == "system" })},
	{name: "calls", able: tools, shows: answers(func(e providertest.Entry) bool { return runs(e) > 0 })},
	{name: "parallel calls", able: tools, shows: answers(func(e providertest.Entry) bool { return runs(e) > 1 })},
	{name: "results", able: tools, shows: asks(func(m providertest.Message) bool { return m.Role == "tool" })},
	{name: "choice of tools", able: tools, shows: requests(func(c *providertest.Conversation) bool { return c.ToolChoice != "" })},
	{name: "pictures", able: func(i providers.Info) bool { return i.Vision }, shows: asks(func(m providertest.Message) bool { return len(m.Media) > 0 })},
	{name: "thought shown", able: thinks, shows: answers(func(e providertest.Entry) bool { return e.Answer.Want.Reasoning != "" })},
	{name: "thought asked for", able: thinks, shows: requests(func(c *providertest.Conversation) bool { return c.Thinking != "" })},
	{name: "replay", able: thinks, shows: asks(func(m providertest.Message) bool { return len(m.Replay) > 0 })},
	{name: "schema", able: func(i providers.Info) bool { return i.Structured }, shows: requests(func(c *providertest.Conversation) bool { return len(c.OutputSchema) > 0 })},
	{name: "tokens", shows: counts("in", "out")},
	{name: "cached, thought, sum", shows: counts("cached", "reasoning", "cache_write", "total", "billed_in")},
	{name: "out of tokens", shows: answers(func(e providertest.Entry) bool { return e.Answer.Want.Finish == "length" })},
	{name: "filter", shows: answers(func(e providertest.Entry) bool {
		return e.Answer.Want.Finish == "content_filter" || e.Answer.Want.Error != nil && e.Answer.Want.Error.Kind == "content_blocked"
	})},
	{name: "refusal", shows: answers(func(e providertest.Entry) bool { return e.Answer.Want.Refusal != nil && *e.Answer.Want.Refusal != "" })},
	{name: "refused requests", shows: answers(func(e providertest.Entry) bool { return e.Answer.Status != 200 })},
	{name: "errors in a 200", shows: answers(func(e providertest.Entry) bool { return e.Answer.Status == 200 && e.Answer.Want.Error != nil })},
	{name: "embeddings", able: func(i providers.Info) bool { return i.Embeds }, test: "TestEmbed"},
}

// runs counts the calls of an answer that may run.
func runs(e providertest.Entry) (n int) {
	for _, t := range e.Answer.Want.Tools {
		if t.Invalid == "" {
			n++
		}
	}
	return n
}

func tools(i providers.Info) bool  { return i.Tools }
func thinks(i providers.Info) bool { return i.Thinking }

// lacks says why an adapter has no fixture for what others have.
var lacks = map[string]map[string]string{
	"anthropic": {"refusal": "a refusal has no text of its own"},
	"gemini":    {"refusal": "a refusal has no text of its own"},
	"bedrock":   {"refusal": "a refusal has no text of its own"},
	"cohere":    {"refusal": "a refusal is plain text"},
	"ollama": {
		"refusal": "a refusal is plain text", "filter": "there is no filter", "choice of tools": "the server takes no choice",
		"cached, thought, sum": "the server counts only what goes in and out",
	},
	"server": {"filter": "the finish says it, like any other"},
}

// cell is what stands in a row under a feature.
func cell(f feature, info providers.Info, all []providertest.Entry) (string, error) {
	if !info.Chat && f.name != "embeddings" || f.able != nil && !f.able(info) {
		return "–", nil
	}
	if f.test != "" {
		if info.Extends != "" {
			return "as " + info.Extends, nil
		}
		return "`" + f.test + "`", nil
	}
	var names []string
	for _, e := range all {
		if e.Family == info.Name && f.shows(e) {
			names = append(names, e.Name)
		}
	}
	if len(names) == 0 {
		switch {
		case info.Extends != "":
			return "as " + info.Extends, nil
		case lacks[info.Name][f.name] != "":
			return "–", nil
		}
		return "", fmt.Errorf("the adapter %s has no fixture for %q, and nothing says why", info.Name, f.name)
	}
	slices.SortFunc(names, func(a, b string) int { return len(a) - len(b) })
	out := "`" + names[0] + "`"
	if len(names) > 1 {
		out += fmt.Sprintf(" +%d", len(names)-1)
	}
	return out, nil
}

const head = `# Model adapters and what shows that they work

Made by ` + "`go generate ./providers/providertest`" + `; do not edit. A name in a cell is a fixture in
` + "`providers/providertest/testdata/ADAPTER/`" + `, +N that there are N more; ` + "`go test ./providers/lua`" + ` runs each of them, and each answer under every
way in which a transport may deliver or cut it. "as openai" means that the profile has this from the adapter it extends; – that the vendor
or the adapter has it not.

`

// document gives the text of docs/providers.md.
func document(adapters []lua.Status) (string, error) {
	all, err := providertest.Catalogue()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(head)
	b.WriteString("| adapter |")
	for _, f := range features {
		b.WriteString(" " + f.name + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(features)) + "\n")
	for _, a := range adapters {
		if a.Err != "" {
			return "", fmt.Errorf("%s", a.Err)
		}
		if a.Info.Local {
			continue
		}
		b.WriteString("| " + a.Info.Name + " |")
		for _, f := range features {
			text, err := cell(f, a.Info, all)
			if err != nil {
				return "", err
			}
			b.WriteString(" " + text + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString("\nThe adapter `offline` answers by itself, from memory: `TestOfflineAnswersFromMemory` and its neighbours.\n\n")
	reasons(&b, adapters)
	if err := facts(&b, all); err != nil {
		return "", err
	}
	return b.String(), nil
}

// reasons lists why some cells have no fixture.
func reasons(b *strings.Builder, adapters []lua.Status) {
	b.WriteString("Where a vendor has nothing to show:\n\n")
	for _, a := range adapters {
		for _, f := range features {
			if why := lacks[a.Info.Name][f.name]; why != "" {
				fmt.Fprintf(b, "- %s, %s: %s\n", a.Info.Name, f.name, why)
			}
		}
	}
	b.WriteString("\n")
}

// facts lists what the wires are and what others got wrong, with what shows that
// it is right here.
func facts(b *strings.Builder, all []providertest.Entry) error {
	list, err := providertest.Facts()
	if err != nil {
		return err
	}
	known := make(map[string]bool)
	for _, f := range list {
		known[f.ID] = true
	}
	for _, e := range all {
		for _, id := range e.Facts {
			if !known[id] {
				return fmt.Errorf("%s/%s names %s, which facts.txt does not know", e.Family, e.Name, id)
			}
		}
	}
	b.WriteString("## Wires\n\n| | wire | shown by |\n|---|---|---|\n")
	wires := true
	for _, f := range list {
		if wires && strings.HasPrefix(f.ID, "D") {
			wires = false
			b.WriteString("\n## What other programs got wrong\n\n| | what | where | shown by |\n|---|---|---|---|\n")
		}
		by, err := shownBy(f, all)
		if err != nil {
			return err
		}
		text := f.Text
		if !wires {
			text += " | "
			if f.Link != "" {
				text += "<https://" + f.Link + ">"
			}
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", f.ID, text, by)
	}
	return nil
}

func shownBy(f providertest.Fact, all []providertest.Entry) (string, error) {
	var out []string
	family := ""
	for _, e := range all {
		if !slices.Contains(e.Facts, f.ID) {
			continue
		}
		name := "`" + e.Name + "`"
		if e.Family != family {
			family = e.Family
			name = family + " " + name
		}
		out = append(out, name)
	}
	for _, t := range f.Tests {
		out = append(out, "`"+t+"`")
	}
	if len(out) == 0 {
		return "", fmt.Errorf("nothing shows %s: %s", f.ID, f.Text)
	}
	return strings.Join(out, ", "), nil
}
