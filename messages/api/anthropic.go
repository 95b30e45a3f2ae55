package api

import "encoding/json"

// MessagesRequest is the body of POST /v1/messages, as far as the agent heeds it; further fields are allowed and ignored.
type MessagesRequest struct {
	// Model names an agent, as in ChatRequest.
	Model string `json:"model"`
	// Messages: the last one must be of role user and becomes the input.
	Messages []ChatTurn `json:"messages"`
	Stream   bool       `json:"stream"`
	// Metadata.UserID becomes the conversation; the header X-Conversation goes before it.
	Metadata struct {
		UserID string `json:"user_id"`
	} `json:"metadata"`
	// Tools and OutputFormat are refused where they ask for something: the agent has tools of its own.
	Tools        []json.RawMessage `json:"tools,omitempty"`
	OutputFormat json.RawMessage   `json:"output_format,omitempty"`
}

// MessagesResponse answers a MessagesRequest: whole, or as it stands when a stream begins.
type MessagesResponse struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Model   string          `json:"model"`
	Content []MessagesBlock `json:"content"`
	// StopReason is null until the end.
	StopReason   *string       `json:"stop_reason"`
	StopSequence *string       `json:"stop_sequence"`
	Usage        MessagesUsage `json:"usage"`
}

// MessagesBlock is a block of text.
type MessagesBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// MessagesUsage counts tokens in the names of that interface.
type MessagesUsage struct {
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
}

// MessagesEvent is one event of a stream; its name is Type. Of the other fields those that belong to the type are set.
type MessagesEvent struct {
	Type    string            `json:"type"`
	Message *MessagesResponse `json:"message,omitempty"`
	Index   *int              `json:"index,omitempty"`
	// ContentBlock begins a block, Delta adds to it or ends the message.
	ContentBlock *MessagesBlock `json:"content_block,omitempty"`
	Delta        any            `json:"delta,omitempty"`
	Usage        *MessagesUsage `json:"usage,omitempty"`
}

// MessagesEnd is the delta that ends a message.
type MessagesEnd struct {
	StopReason   string  `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
}

// MessagesError is the body of an error in that interface, and the data of its error event.
type MessagesError struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	RequestID string `json:"request_id,omitempty"`
}
