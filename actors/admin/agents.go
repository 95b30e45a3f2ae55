package admin

import (
	"context"
	"net/http"
	"strings"

	"homeagent/actors/kit"
	"homeagent/messages"
	"homeagent/messages/api"
)

func (f *face) agentsOf(ctx context.Context, of string) (*messages.AgentList, *refusal) {
	l, no := ask[*messages.AgentList](f, ctx, askLimit, "agents/"+of, &messages.ListAgents{})
	return l, agentGone(of, no)
}

// agentGone turns over that nobody runs where an agent was asked: main always comes back, any other is none.
func agentGone(of string, no *refusal) *refusal {
	if no != nil && of != "main" && (no.body.Code == api.CodeUnavailable || no.body.Code == kit.CodeGone) {
		return unknownAgent(of)
	}
	return no
}

func unknownAgent(of string) *refusal {
	return refused(404, "unknown_agent", "There is no such agent.", "`waiter agents`, or GET /api/v1/agents, shows all.").with("agent", of)
}

// agents is GET /api/v1/agents: all of the node, each before its residents.
func (f *face) agents(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	out := api.Agents{Agents: []api.Agent{}}
	for todo := []string{"main"}; len(todo) > 0; {
		of := todo[0]
		todo = todo[1:]
		l, no := f.agentsOf(r.Context(), of)
		if no != nil {
			if of != "main" {
				continue // it ended while the list was made
			}
			return nil, no
		}
		for i, a := range l.GetAgents() {
			if i == 0 {
				out.Agents = append(out.Agents, agent(a)) // itself
				continue
			}
			todo = append(todo, a.GetSpec().GetAgent())
		}
	}
	return out, nil
}

// agent is GET /api/v1/agents/{agent}, with its scheduler.
func (f *face) agent(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	of, no := agentOf(r.PathValue("agent"))
	if no != nil {
		return nil, no
	}
	l, no := f.agentsOf(r.Context(), of)
	if no != nil {
		return nil, no
	}
	if len(l.GetAgents()) == 0 {
		return nil, unknownAgent(of)
	}
	out := agent(l.GetAgents()[0])
	if out.Scheduler == nil {
		s, no := f.schedulerOf(r.Context(), of, listedWaiting)
		if no != nil {
			return nil, no
		}
		out.Scheduler = s
	}
	return out, nil
}

// createAgent is POST /api/v1/agents.
func (f *face) createAgent(w http.ResponseWriter, r *http.Request) (any, *refusal) {
	if f.draining.Load() {
		return nil, drainingRefusal()
	}
	var c api.CreateAgent
	if no := decode(w, r, &c, true); no != nil {
		return nil, no
	}
	parent, no := agentOf(c.Parent)
	if no != nil {
		return nil, no
	}
	if c.Capacity < 0 || c.Capacity > 1<<20 {
		return nil, malformed("The capacity must be from 0 to 1048576.", "").with("field", "capacity")
	}
	m := &messages.CreateAgent{
		Name: c.Name, Task: c.Task, PersonWaits: true,
		Spec: &messages.AgentSpec{
			TaskPrompt: c.TaskPrompt, AllowedOutputs: c.AllowedOutputs, Capacity: int32(c.Capacity), Principal: owner(),
		},
	}
	if c.Task != "" {
		m.InputId = f.newID("")
	}
	got, no := ask[*messages.AgentView](f, context.WithoutCancel(r.Context()), submitLimit, "agents/"+parent, m)
	if no != nil {
		return nil, no
	}
	out := agent(got)
	out.InputID = m.GetInputId()
	return answer{http.StatusCreated, out}, nil
}

// destroyAgent is DELETE /api/v1/agents/{agent}?drop=.
func (f *face) destroyAgent(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	of, no := agentOf(r.PathValue("agent"))
	if no != nil {
		return nil, no
	}
	drop, no := flag(r, "drop")
	if no != nil {
		return nil, no
	}
	at := strings.LastIndex(of, "/resident/")
	if at < 0 {
		return nil, refused(403, "not_allowed", "The main agent can not be destroyed.", "Stop the node instead.")
	}
	parent, name := of[:at], of[at+len("/resident/"):]
	got, no := ask[*messages.AgentView](f, context.WithoutCancel(r.Context()), submitLimit, "agents/"+parent,
		&messages.DestroyAgent{Name: name, Drop: drop})
	if no != nil {
		return nil, no
	}
	return agent(got), nil
}
