package configs

import "strings"

// Dropped says what became of a key of the original system.
type Dropped struct {
	// Name is the dotted name; one that ends in ".*" stands for all below it.
	Name string
	// Hint says what to use now, or why there is nothing.
	Hint string
}

const (
	notYet   = "this node has no such feature yet, so the key would do nothing"
	byPlugin = "it belongs to a plugin, and this node takes none yet"
)

// DroppedKeys returns the keys of the original system that this node does not
// have, each with its successor or the reason. The slice belongs to the caller.
func DroppedKeys() []Dropped {
	return []Dropped{
		{"webui.listen_addr", "use the flag --listen or HOMED_LISTEN: the web face is part of the core and its address is needed before the store opens"},
		{"webui.api_key", "nothing to set: the credential is the file run/admin.token in the data folder"},
		{"webui.*", "the web face is part of the core: see core.admin.*"},
		{"core.daemon.data_dir", "use the flag --data or HOMED_DATA: it is needed before the store opens"},
		{"core.daemon.heartbeat_interval", "nothing to set: supervision is by the actor tree, see `waiter tree`"},
		{"core.daemon.check_interval", "nothing to set: supervision is by the actor tree, see `waiter tree`"},
		{"core.log.level", "use core.daemon.log_level"},
		{"core.log.path", "nothing to set: the log is logs/homed.log in the data folder"},
		{"core.defaults.llm_endpoints", "use core.llm.sources.<name>.base_url; `waiter providers add` looks for local model servers"},
		{"core.llm.provider", "use core.llm.sources.<name>.adapter, or `waiter providers add`"},
		{"core.llm.adapter", "use core.llm.sources.<name>.adapter, or `waiter providers add`"},
		{"core.llm.model", "use core.llm.sources.<name>.model, or `waiter providers add`"},
		{"core.llm.base_url", "use core.llm.sources.<name>.base_url, or `waiter providers add`"},
		{"core.llm.api_key", "use core.llm.sources.<name>.api_key, or `waiter providers add`"},
		{"core.llm.temperature", "use core.llm.sources.<name>.temperature"},
		{"core.llm.max_tokens", "use core.llm.sources.<name>.max_tokens"},
		{"core.llm.thinking_enabled", "use core.llm.sources.<name>.thinking_enabled"},
		{"core.llm.sources.<name>.adapter_path", "put the adapter script into adapters/ in the data folder and name it in core.llm.sources.<name>.adapter"},
		{"core.defaults.image", "there are no agent containers: the node is one process"},
		{"core.defaults.openclaw_enabled", "there are no agent containers: the node is one process"},
		{"core.defaults.resource.*", "there are no agent containers: the node is one process"},
		{"core.defaults.snapshot.*", "there are no snapshots of files: stop the node and copy the data folder"},
		{"core.defaults.rollback.*", "there is no roll-back of files: the store is transactional, and a model that cannot be reached never touches files"},
		{"core.plugin.dir", "nothing to set: plugins/ in the data folder"},
		{"core.knowledge.path", "nothing to set: knowledge/ in the data folder"},
		{"core.memory.graph", "nothing to set: all memory is in store/ in the data folder"},
		{"core.memory.text", "nothing to set: all memory is in store/ in the data folder"},
		{"core.memory.documents", "nothing to set: all memory is in store/ in the data folder"},
		{"core.memory.media.dir", "nothing to set: media is in store/ in the data folder"},
		{"core.memory.media.enabled", notYet},
		{"core.memory.multimodal_space.*", notYet},
		{"core.agent.offload_enabled", notYet},
		{"core.agent.offload_busy_after", notYet},
		{"core.agent.offload_min_pending", notYet},
		{"core.agent.offload_max_residents", notYet},
		{"core.agent.distill_interval", notYet},
		{"core.agent.archive_interval", notYet},
		{"core.agent.review_interval", notYet},
		{"core.agent.merge_interval", notYet},
		{"core.agent.workdir", byPlugin},
		{"core.agent.onnx_model_path", notYet},
		{"core.agent.failback_plugins", "nothing to set: the web face, the socket and the command line are part of the core and work when every plugin is down"},
		{"core.input_processing.image.fallback_model", "set core.llm.sources.<name>.model of the source that core.input_processing.image.fallback_provider names"},
		{"core.input_processing.image.describe_prompt", "nothing to set: the model that asks says what it wants to know"},
		{"core.input_processing.image.ocr_enabled", "nothing to set: ocr_image is offered while a picture waits that the model cannot see"},
		{"core.input_processing.image.ocr_prompt", "nothing to set: the node asks for the text as it stands"},
		{"core.input_processing.audio.provider", "use core.input_processing.audio.fallback_provider"},
		{"core.input_processing.audio.model", "set core.llm.sources.<name>.model of the source that core.input_processing.audio.fallback_provider names"},
		{"core.internal.seed_version", "nothing to set: defaults are part of the program and are never copied into the store"},
		{"remotedevice.*", byPlugin},
		{"core.data", "use the flag --data or HOMED_DATA: it is needed before the store opens"},
		{"core.profile", "use the flag --profile or HOMED_PROFILE: it is needed before the store opens"},
		{"core.listen", "use the flag --listen or HOMED_LISTEN: it is needed before the store opens"},
	}
}

// dropped finds the entry for key.
func dropped(entries []Dropped, key string) (Dropped, bool) {
	for _, entry := range entries {
		if entry.Name == key {
			return entry, true
		}
		if stem, all := strings.CutSuffix(entry.Name, "*"); all && strings.HasPrefix(key, stem) {
			return entry, true
		}
		if prefix, suffix, wild := strings.Cut(entry.Name, wildcard); wild &&
			len(key) > len(prefix)+len(suffix) && strings.HasPrefix(key, prefix) && strings.HasSuffix(key, suffix) {
			return entry, true
		}
	}
	return Dropped{}, false
}
