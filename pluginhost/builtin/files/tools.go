package files

import (
	"encoding/json"

	"homeagent/messages"
)

const (
	toolList   = "files_list"
	toolRead   = "files_read"
	toolWrite  = "files_write"
	toolAppend = "files_append"
)

// object is a JSON Schema of arguments.
func object(required []string, properties map[string]any) []byte {
	b, err := json.Marshal(map[string]any{
		"type": "object", "required": required, "properties": properties, "additionalProperties": false,
	})
	if err != nil {
		panic(err) // made of texts
	}
	return b
}

func text(description string) map[string]any {
	return map[string]any{"type": "string", "description": description}
}

func number(description string, minimum int) map[string]any {
	return map[string]any{"type": "integer", "minimum": minimum, "description": description}
}

func choice(description string, of ...string) map[string]any {
	return map[string]any{"type": "string", "enum": of, "description": description}
}

// defs are the tools over these folders.
func defs(all []folder) []*messages.ToolDef {
	where := "Paths begin with one of the folders: " + names(all) + "."
	if len(all) == 1 {
		where = "Paths lie in the folder " + all[0].name + "."
	}
	filePath := text("Path of the file, such as " + all[0].name + "/notes/today.md.")
	content, encoding := text("What to write."), choice("How content is written here: text (the default) or base64.", "text", "base64")
	return []*messages.ToolDef{
		{
			Name: toolList, Provider: "plugin/files", ToolClass: messages.ToolClass_TOOL_CLASS_READ,
			Effect: messages.ToolEffect_TOOL_EFFECT_PURE, OnPreempt: messages.OnPreempt_ON_PREEMPT_FINISH, ParallelSafe: true, TimeoutMs: 20_000,
			Description: "List a folder: names, kinds, sizes in bytes, times of change. " + where,
			ParametersJson: object([]string{}, map[string]any{
				"path": text("Path of the folder; absent lists the allowed folders."), "limit": number("Most entries.", 1),
			}),
		},
		{
			Name: toolRead, Provider: "plugin/files", ToolClass: messages.ToolClass_TOOL_CLASS_READ,
			Effect: messages.ToolEffect_TOOL_EFFECT_PURE, OnPreempt: messages.OnPreempt_ON_PREEMPT_FINISH, ParallelSafe: true, TimeoutMs: 20_000,
			Description: "Read a file, or a part of a long one: when next_offset comes back, there is more from there on. " + where,
			ParametersJson: object([]string{"path"}, map[string]any{
				"path": filePath, "offset": number("First byte, from 0.", 0), "limit": number("Most bytes.", 1),
				"encoding": choice("text (the default), or base64 for a file that is no text.", "text", "base64"),
			}),
		},
		{
			Name: toolWrite, Provider: "plugin/files", ToolClass: messages.ToolClass_TOOL_CLASS_WRITE,
			Effect: messages.ToolEffect_TOOL_EFFECT_IDEMPOTENT, OnPreempt: messages.OnPreempt_ON_PREEMPT_FINISH, TimeoutMs: 30_000,
			Description: "Write a whole file; folders on the way are made. " + where,
			ParametersJson: object([]string{"path", "content"}, map[string]any{
				"path": filePath, "content": content, "encoding": encoding,
				"mode": choice("create (the default) refuses when another file is there; overwrite replaces it.", "create", "overwrite"),
			}),
		},
		{
			Name: toolAppend, Provider: "plugin/files", ToolClass: messages.ToolClass_TOOL_CLASS_WRITE,
			Effect: messages.ToolEffect_TOOL_EFFECT_ONCE, OnPreempt: messages.OnPreempt_ON_PREEMPT_FINISH, TimeoutMs: 30_000,
			Description:    "Write at the end of a file, which is made if it is not there. Nothing is put between: begin a new line yourself. " + where,
			ParametersJson: object([]string{"path", "content"}, map[string]any{"path": filePath, "content": content, "encoding": encoding}),
		},
	}
}
