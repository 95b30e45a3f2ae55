package config

import (
	"context"
	"fmt"
	"slices"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/messages"
)

// Kind is the row of config in the kernel's table.
const Kind = "config"

// Deps are what the kernel gives the actor.
type Deps struct {
	// Registry is the settings of the node. It outlives the actor.
	Registry *configs.Registry
	// Changed is told of the settings in force after each change, on a worker's goroutine; nil means nobody wants them.
	// It is for what is no actor, such as the level of the log.
	Changed func(*configs.Snapshot)
	// Params bound the actor.
	Params Params
}

// Props makes the actor.
func Props(d Deps) kit.Props {
	p := performer{registry: d.Registry, tell: d.Changed}
	return kit.Props{Kind: Kind, New: func() kit.Machine { return New(d.Params) }, Perform: p.perform, System: true}
}

// The keys of workers. Reads do not wait for each other; a write is never cut.
const (
	readWork  = "read"
	writeWork = "write"
)

type performer struct {
	registry *configs.Registry
	tell     func(*configs.Snapshot)
}

func (p performer) perform(sh kit.Shell, e kit.Effect) {
	switch e := e.(type) {
	case survey:
		sh.Go(readWork, 0, func(context.Context, func(any)) any { return p.survey() })
	case read:
		sh.Go(readWork, 0, func(context.Context, func(any)) any { return p.read(e) })
	case write:
		sh.Go(writeWork, 0, func(context.Context, func(any)) any { return p.write(e) })
	default:
		panic(fmt.Sprintf("config: effect %T has no performer", e))
	}
}

func (p performer) survey() surveyed {
	result := surveyed{Version: p.registry.Snapshot().Version(), Keys: len(p.registry.List(""))}
	for _, one := range p.registry.Problems() {
		result.Problems = append(result.Problems, problem{Key: one.Key, Origin: string(one.Origin), Err: configs.Message(one.Err)})
	}
	return result
}

// read takes the version before it reads: what it reads may be newer, never older.
func (p performer) read(e read) values {
	result := values{Why: e.Why, Prefixes: e.Prefixes, Version: p.registry.Snapshot().Version()}
	if e.Key != "" {
		entry, err := p.registry.Get(e.Key)
		if err != nil {
			result.Err = configs.Message(err)
			return result
		}
		result.List = []*messages.ConfigValue{show(entry)}
		return result
	}
	for _, entry := range p.registry.List("") {
		if fits(e.Prefixes, entry.Key) {
			result.List = append(result.List, show(entry))
		}
	}
	return result
}

func (p performer) write(e write) written {
	edits := make([]configs.Edit, len(e.Entries))
	for i, entry := range e.Entries {
		edits[i] = configs.Edit{Key: entry.GetKey(), Value: entry.GetValue(), Unset: entry.Value == nil}
	}
	before := p.registry.Snapshot()
	change, err := p.registry.Set(e.By, edits...)
	after := p.registry.Snapshot()
	result := written{Version: after.Version(), Problems: len(p.registry.Problems()), Err: configs.Message(err)}
	changed := configs.Diff(before, after)
	result.Changed = p.changed(changed)
	if err != nil {
		return result
	}
	if p.tell != nil {
		p.tell(after)
	}
	result.Restart = change.Restart
	result.Shown = p.shown(edits, changed)
	return result
}

// changed shows the keys of a difference as they are now. A key that is no longer declared has no value.
func (p performer) changed(changes []configs.Changed) []*messages.ConfigValue {
	var list []*messages.ConfigValue
	for _, c := range changes {
		value := &messages.ConfigValue{Key: c.Key, Secret: c.Secret}
		if entry, err := p.registry.Get(c.Key); err == nil {
			value = show(entry)
		}
		// The difference is of two snapshots; a later change has its own message.
		value.Value, value.Origin = c.New, string(c.Origin)
		list = append(list, value)
	}
	return list
}

// shown shows the keys that were named and those that changed with them, once each, sorted.
func (p performer) shown(edits []configs.Edit, changes []configs.Changed) []*messages.ConfigValue {
	var names []string
	for _, edit := range edits {
		names = append(names, edit.Key)
	}
	for _, c := range changes {
		names = append(names, c.Key)
	}
	slices.Sort(names)
	var list []*messages.ConfigValue
	for _, name := range slices.Compact(names) {
		// The name of a whole thing, or of a key that is gone now, has no entry.
		if entry, err := p.registry.Get(name); err == nil {
			list = append(list, show(entry))
		}
	}
	return list
}

// show puts an entry into the form that crosses actors.
func show(e configs.Entry) *messages.ConfigValue {
	d := e.Definition
	v := &messages.ConfigValue{
		Key: e.Key, Value: e.Value, Origin: string(e.Origin), Type: string(d.Type), Unit: d.Unit, Default: d.Default,
		Legal: e.Legal, Description: d.Description, NameEn: d.English, NameZh: d.Chinese, Category: string(d.Category),
		Secret: d.Secret(), Live: d.Apply == configs.Live, Environment: e.Environment, Waiting: e.Waiting, Pending: e.Pending,
		SetBy: e.Stored.By, Options: slices.Clone(d.Options), Min: d.Min, Max: d.Max, Step: d.Step, Required: d.Required,
	}
	if e.Problem != nil {
		v.Problem = configs.Message(e.Problem)
	}
	if !e.Stored.At.IsZero() {
		v.SetUs = e.Stored.At.UnixMicro()
	}
	return v
}
