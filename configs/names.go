package configs

// Core is the owner of the keys under core.
const Core = "core"

// The names of the core keys. Names of the original system are kept where the
// meaning is the same.
const (
	KeyAgentName           = "core.agent.name"
	KeyAgentLanguage       = "core.agent.language"
	KeyAgentTimezone       = "core.agent.timezone"
	KeyAgentSystemPrompt   = "core.agent.system_prompt"
	KeyAgentPersonalPrompt = "core.agent.personal_prompt"
	KeyAgentMaxToolTurns   = "core.agent.max_tool_turns"
	KeyAgentMaxContextSize = "core.agent.max_context_size"
	KeyAgentContextRatio   = "core.agent.context_ratio"
	KeyAgentContextLimit   = "core.agent.context_limit"
	KeyAgentTurnDeadline   = "core.agent.turn_deadline"
	KeyAgentToolTimeout    = "core.agent.tool_timeout"
	KeyAgentQueueLimit     = "core.agent.queue_limit"

	KeySchedulerCooldown    = "core.scheduler.cooldown"
	KeyInputDuplicateWindow = "core.input.duplicate_window"

	KeyToolsDenied  = "core.tools.denied"
	KeyToolsTimeout = "core.tools.timeout." + wildcard

	KeyToolsSends = "core.tools.sends"

	KeyEgressAllow = "core.egress.allow"

	KeyMemoryRecallLimit = "core.memory.recall_limit"
	KeyEmbeddingModel    = "core.agent.embedding_model_path"

	KeyTimersMax         = KeyTimersPrefix + "max_timers"
	KeyTimersMinInterval = KeyTimersPrefix + "min_interval"
	KeyTimersGrace       = KeyTimersPrefix + "grace"
	KeyTimersKeepDone    = KeyTimersPrefix + "keep_done"

	KeyLogLevel     = "core.daemon.log_level"
	KeyStoreReserve = "core.store.reserve_bytes"

	KeyAdminMaxBody        = "core.admin.max_body_bytes"
	KeyAdminEventRing      = "core.admin.event_ring"
	KeyAdminHeartbeat      = "core.admin.sse_heartbeat"
	KeyAdminAllowedOrigins = "core.admin.allowed_origins"
	KeyAdminAllowedHosts   = "core.admin.allowed_hosts"
)

// The names of the keys of built-in plugins.
const (
	KeyFilesEnabled    = "plugin.files.enabled"
	KeyFilesRoots      = "plugin.files.roots"
	KeyFilesMaxRead    = "plugin.files.max_read"
	KeyFilesMaxWrite   = "plugin.files.max_write"
	KeyFilesMaxEntries = "plugin.files.max_entries"

	KeyWebEnabled  = "plugin.web.enabled"
	KeyWebMaxBytes = "plugin.web.max_bytes"
	KeyWebMaxText  = "plugin.web.max_text"
	KeyWebTimeout  = "plugin.web.timeout"
)

// PluginPrefix is what the names of all keys of the plugin with the given name
// start with.
func PluginPrefix(plugin string) string { return "plugin." + plugin + "." }

// PluginEnabled returns the key that turns the plugin with the given name on and
// off.
func PluginEnabled(plugin string) string { return PluginPrefix(plugin) + "enabled" }

// KeyTimersPrefix is what the names of all keys of timers start with.
const KeyTimersPrefix = "core.timers."

// SourcePrefix is what the names of all keys of model sources start with; the
// name of the source and one of the SourceField constants follow.
const SourcePrefix = "core.llm.sources."

// The fields of a model source.
const (
	SourceAdapter          = "adapter"
	SourceBaseURL          = "base_url"
	SourceModel            = "model"
	SourceAPIKey           = "api_key"
	SourceAPIKeys          = "api_keys"
	SourceHeaders          = "headers"
	SourceExtraBody        = "extra_body"
	SourceOptions          = "options"
	SourceStream           = "stream"
	SourceTools            = "tools"
	SourcePriceIn          = "price_in"
	SourcePriceOut         = "price_out"
	SourcePriceCached      = "price_cached"
	SourcePriceCacheWrite  = "price_cache_write"
	SourcePriority         = "priority"
	SourceEnabled          = "enabled"
	SourceMaxConcurrent    = "max_concurrent"
	SourceContextWindow    = "context_window"
	SourceMaxTokens        = "max_tokens"
	SourceTemperature      = "temperature"
	SourceThinkingEnabled  = "thinking_enabled"
	SourceVision           = "vision"
	SourceAudio            = "audio"
	SourceTimeoutConnect   = "timeout_connect"
	SourceTimeoutFirstByte = "timeout_first_byte"
	SourceTimeoutIdle      = "timeout_idle"
	SourceTimeoutTotal     = "timeout_total"
)

// SourceKey returns the dotted name of a field of the model source with the given
// name.
func SourceKey(source, field string) string { return SourcePrefix + source + "." + field }
