package api

import "time"

// UsageReport answers GET /api/v1/usage: what model calls used on the days from From to To, which outlives a restart,
// and in Since, Models and Tasks what happened since the process started.
type UsageReport struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Currency names the unit of money: core.llm.currency.
	Currency string `json:"currency"`
	// Rows are kept apart by the fields that were asked for; the others are empty.
	Rows  []UsageRow `json:"rows"`
	Total UsageRow   `json:"total"`
	// Cut says that there were more rows.
	Cut     bool     `json:"cut,omitempty"`
	Budgets []Budget `json:"budgets"`
	Tokens
}

// UsageRow sums up calls.
type UsageRow struct {
	Day          string `json:"day,omitempty"`
	Source       string `json:"source,omitempty"`
	Model        string `json:"model,omitempty"`
	Agent        string `json:"agent,omitempty"`
	Channel      string `json:"channel,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	Calls        uint64 `json:"calls"`
	Failed       uint64 `json:"failed"`
	// Cost by the prices of the sources at the time of each call.
	Cost float64 `json:"cost"`
	// Unpriced counts calls whose cost is unknown and not in Cost.
	Unpriced uint64 `json:"unpriced"`
	Usage
}

// Budget is how much of one is spent.
type Budget struct {
	// Period: day, month.
	Period string    `json:"period"`
	Limit  float64   `json:"limit"`
	Spent  float64   `json:"spent"`
	Ends   time.Time `json:"ends"`
}
