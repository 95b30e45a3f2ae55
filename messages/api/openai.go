package api

import "encoding/json"

// ChatRequest is the body of POST /v1/chat/completions, as far as the agent heeds it; further fields are allowed and
// ignored, since clients send many.
type ChatRequest struct {
	ChatWishes
	// Model names an agent: "homeagent" or "main", or the path of a resident. Empty means main.
	Model string `json:"model"`
	// Messages: the last one of role user becomes the input; the agent has its own memory of what came before.
	Messages []ChatTurn `json:"messages"`
	Stream   bool       `json:"stream"`
	// StreamOptions asks for a last chunk with the usage.
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	// User becomes the conversation; the header X-Conversation goes before it.
	User string `json:"user"`
}

// ChatWishes are fields that would change what an answer is, and that an agent with tools and a memory of its own can not
// grant: each is refused by name where it asks for something.
type ChatWishes struct {
	Tools          []json.RawMessage `json:"tools,omitempty"`
	Functions      []json.RawMessage `json:"functions,omitempty"`
	N              *int              `json:"n,omitempty"`
	Logprobs       bool              `json:"logprobs,omitempty"`
	Modalities     []string          `json:"modalities,omitempty"`
	ResponseFormat *struct {
		Type string `json:"type"`
	} `json:"response_format,omitempty"`
}

// ChatTurn is one message of a ChatRequest.
type ChatTurn struct {
	Role string `json:"role"`
	// Content: a string, or a list of parts of type text.
	Content json.RawMessage `json:"content"`
}

// ChatResponse answers a ChatRequest that does not stream.
type ChatResponse struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []ChatChoice `json:"choices"`
	Usage   ChatUsage    `json:"usage"`
}

// ChatChoice is the one choice of a ChatResponse.
type ChatChoice struct {
	Index        int        `json:"index"`
	Message      ChatAnswer `json:"message"`
	FinishReason string     `json:"finish_reason"`
}

// ChatAnswer is the message of the agent.
type ChatAnswer struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// ChatUsage counts tokens in the names of that interface.
type ChatUsage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	TotalTokens      int64 `json:"total_tokens"`
}

// ChatChunk is one piece of a streaming answer.
type ChatChunk struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []ChunkPiece `json:"choices"`
	Usage   *ChatUsage   `json:"usage,omitempty"`
}

// ChunkPiece is the one choice of a ChatChunk.
type ChunkPiece struct {
	Index        int        `json:"index"`
	Delta        ChunkDelta `json:"delta"`
	FinishReason *string    `json:"finish_reason"`
}

// ChunkDelta is what a chunk adds.
type ChunkDelta struct {
	Role             string `json:"role,omitempty"`
	Content          string `json:"content,omitempty"`
	ReasoningContent string `json:"reasoning_content,omitempty"`
}

// ChatError is the body of an error in that interface.
type ChatError struct {
	Error ChatErrorBody `json:"error"`
}

// ChatErrorBody says what went wrong.
type ChatErrorBody struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    string `json:"code"`
	Param   string `json:"param,omitempty"`
}

// Models answers GET /v1/models.
type Models struct {
	Object string  `json:"object"`
	Data   []Model `json:"data"`
}

// Model is one agent as a model.
type Model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}
