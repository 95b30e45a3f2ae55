// Package obs is the one place where a node's logging, metrics and build information are set up. Every package may
// import it; nothing in it is global: the process opens one [Log] and one [Metrics] and hands down a *slog.Logger or a
// *Metrics to whoever needs one.
//
// House rules of logging: the message is static, keys are snake_case, facts that others act on are typed messages and
// not log lines. A value that must not be seen is registered with [Secrets.Add] when it becomes known; from then on it
// leaves the process through no log line, whichever attribute, error text or nested struct it hides in.
package obs
