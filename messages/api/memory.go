package api

import "time"

// Recalled is one thing that memory brought up.
type Recalled struct {
	ID   string    `json:"id"`
	Text string    `json:"text"`
	At   time.Time `json:"at,omitzero"`
	// Via is the way that found it: lexical, graph, recency.
	Via          string  `json:"via"`
	Score        float64 `json:"score"`
	Speaker      string  `json:"speaker,omitempty"`
	Conversation string  `json:"conversation,omitempty"`
	// Relevance is how far it bears on the question, 0 to 1.
	Relevance float64 `json:"relevance,omitempty"`
	// Channels are the parts of the score, before they were scaled to the best item, the weightiest first.
	Channels []ChannelScore `json:"channels,omitempty"`
	// Source is the task in which it was said, or what a fact was learnt from.
	Source string `json:"source,omitempty"`
	// Path are the names from the question to a fact.
	Path []string `json:"path,omitempty"`
	// Matched are the words of the question that it holds, as the index has them.
	Matched []string `json:"matched,omitempty"`
	// Taint: recalled, or foreign for what may not be trusted.
	Taint string `json:"taint,omitempty"`
	// SupersededBy is a later item that tells otherwise.
	SupersededBy string `json:"superseded_by,omitempty"`
}

// ChannelScore is what one way of searching says for an item.
type ChannelScore struct {
	Channel string  `json:"channel"`
	Score   float64 `json:"score"`
}

// MemoryWhy explains what memory answers to a text.
type MemoryWhy struct {
	Items []Recalled `json:"items"`
	// LeftOut was found and bears on the text too little.
	LeftOut []Recalled `json:"left_out"`
	// None says that memory was searched and has nothing.
	None bool `json:"none"`
	// Floor is the relevance that the best text had to reach.
	Floor float64 `json:"floor"`
	// Events and Facts are those whose id the text is.
	Events []MemoryEvent `json:"events"`
	Facts  []Fact        `json:"facts"`
}

// MemoryEvent is one entry of the context.
type MemoryEvent struct {
	EventID string `json:"event_id"`
	// Kind: input, response, tool, note.
	Kind         string    `json:"kind"`
	TaskID       string    `json:"task_id,omitempty"`
	Agent        string    `json:"agent,omitempty"`
	Channel      string    `json:"channel,omitempty"`
	Conversation string    `json:"conversation,omitempty"`
	Principal    string    `json:"principal,omitempty"`
	Content      []Block   `json:"content"`
	At           time.Time `json:"at,omitzero"`
	// Taint: trusted, foreign, model, recalled.
	Taint     string   `json:"taint,omitempty"`
	Tools     []string `json:"tools,omitempty"`
	Interrupt bool     `json:"interrupt,omitempty"`
}

// Fact is one triple of the graph.
type Fact struct {
	FactID    string `json:"fact_id,omitempty"`
	Subject   string `json:"subject"`
	Predicate string `json:"predicate"`
	Object    string `json:"object"`
	// Confidence 0 to 1; zero means 1.
	Confidence  float64 `json:"confidence,omitempty"`
	SubjectType string  `json:"subject_type,omitempty"`
	ObjectType  string  `json:"object_type,omitempty"`
	Source      string  `json:"source,omitempty"`
	// True from ValidFrom until ValidTo; absent means from when it was learnt, and still.
	ValidFrom time.Time `json:"valid_from,omitzero"`
	ValidTo   time.Time `json:"valid_to,omitzero"`
	Learned   time.Time `json:"learned,omitzero"`
	// Functional: subject and predicate have one object at a time.
	Functional bool `json:"functional,omitempty"`
}

// Memory answers GET /api/v1/memory.
type Memory struct {
	Items   []Recalled     `json:"items"`
	Events  []MemoryEvent  `json:"events"`
	Facts   []Fact         `json:"facts"`
	Figures *MemoryFigures `json:"figures,omitempty"`
}

// MemoryFigures counts what memory holds.
type MemoryFigures struct {
	Events int64 `json:"events"`
	Facts  int64 `json:"facts"`
	Terms  int64 `json:"terms"`
	// Dictionary says that the word dictionary is loaded.
	Dictionary bool `json:"dictionary"`
	// VectorSpace is the fingerprint of the word vectors that are loaded, Vectors how many events have one in it.
	VectorSpace string `json:"vector_space,omitempty"`
	Vectors     int64  `json:"vectors,omitempty"`
}

// Facts is the body of POST /api/v1/memory/facts.
type Facts struct {
	// Facts, at most 100; all or none are written.
	Facts []Fact `json:"facts"`
	// Key of the batch: the same key again changes nothing. Empty means one made for this request.
	Key string `json:"key,omitempty"`
}

// FactsWritten answers it.
type FactsWritten struct {
	FactIDs []string `json:"fact_ids"`
	// Closed are facts that were true until now.
	Closed []string `json:"closed"`
}
