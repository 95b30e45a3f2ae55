// Package e2e proves the node from outside: its tests build the commands, run them as processes over data folders of
// their own, talk to them as people do, kill them, and look at what is left.
package e2e
