package usage

import (
	"math"
	"time"

	"homeagent/configs"
	"homeagent/messages"
)

// Micros is how many parts the unit of money has.
const Micros = 1_000_000

// Cost is what a call costs, in millionths of the unit of money. ok is false when it cannot be told, because the tokens
// of a kind that was used have no price.
func Cost(u *messages.Usage, p configs.Price) (micros int64, ok bool) {
	prompt, answer := Prompt(u), Answer(u)
	cached, written := min(u.GetCached(), prompt), u.GetCacheWrite()
	written = min(written, prompt-cached)
	if p.In == nil && prompt > 0 || p.Out == nil && answer > 0 {
		return 0, false
	}
	either := func(price, other *float64) float64 {
		switch {
		case price != nil:
			return *price
		case other != nil:
			return *other
		}
		return 0
	}
	// A price is for a million tokens, a millionth of the unit is what one token at price 1 costs.
	sum := float64(prompt-cached-written)*either(p.In, nil) + float64(cached)*either(p.Cached, p.In) +
		float64(written)*either(p.CacheWrite, p.In) + float64(answer)*either(p.Out, nil)
	if sum >= math.MaxInt64/2 {
		return math.MaxInt64 / 2, true
	}
	return int64(math.Round(sum)), true
}

// Prompt is the whole prompt in tokens.
func Prompt(u *messages.Usage) int64 {
	return max(u.GetPromptTotal(), u.GetInput(), 0)
}

// Answer is the whole answer in tokens, reasoning among them. Most vendors count reasoning as part of the answer; where
// the sum on the wire says that it stands beside it, it is added.
func Answer(u *messages.Usage) int64 {
	out := max(u.GetOutput(), 0)
	if r := u.GetReasoning(); r > 0 && u.GetTotal() > 0 && u.GetTotal() == Prompt(u)+out+r {
		out += r
	}
	return out
}

// Used tells whether any tokens are known.
func Used(u *messages.Usage) bool { return Prompt(u) > 0 || Answer(u) > 0 }

// Day names the day of a moment in a zone.
func Day(at time.Time, zone *time.Location) string { return at.In(zone).Format(time.DateOnly) }

// ParseDay checks a day.
func ParseDay(text string) error {
	if _, err := time.Parse(time.DateOnly, text); err != nil {
		return ErrDay
	}
	return nil
}

// Month is the part of a day that names its month.
func Month(day string) string { return day[:len("2027-03")] }

// Sum adds one row's figures to another's.
func Sum(to, row *messages.UsageRow) {
	to.Calls += row.GetCalls()
	to.Failed += row.GetFailed()
	to.CostMicros += row.GetCostMicros()
	to.Unpriced += row.GetUnpriced()
	AddTokens(to, row.GetUsage())
}

// AddTokens adds tokens to a row.
func AddTokens(to *messages.UsageRow, u *messages.Usage) {
	if u == nil {
		return
	}
	if to.Usage == nil {
		to.Usage = &messages.Usage{}
	}
	t := to.Usage
	t.Input += u.GetInput()
	t.Output += u.GetOutput()
	t.Cached += u.GetCached()
	t.Reasoning += u.GetReasoning()
	t.CacheWrite += u.GetCacheWrite()
	t.PromptTotal += u.GetPromptTotal()
	t.Total += u.GetTotal()
	t.BilledInput += u.GetBilledInput()
	t.BilledOutput += u.GetBilledOutput()
	t.Reported |= u.GetReported()
}
