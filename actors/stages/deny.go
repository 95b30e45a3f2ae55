package stages

import (
	"context"
	"time"

	"homeagent/configs"
	"homeagent/messages"
)

// DenyTools makes the guard of before_toolcall that denies the tools a person has named in core.tools.denied. denied is
// asked at each run, from any goroutine, and returns the names in force.
func DenyTools(denied func() []string) Handler {
	return Handler{
		Name: "tools.denied", Modifies: true, Guard: true, Deadline: time.Second,
		Run: func(_ context.Context, c *messages.StageContext) error {
			names := denied()
			for _, inv := range c.GetCalls() {
				if configs.Covers(names, inv.GetName()) {
					inv.Denied = "The tool " + inv.GetName() + " is denied on this node (core.tools.denied)."
				}
			}
			return nil
		},
	}
}
