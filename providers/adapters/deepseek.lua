-- DeepSeek: thinks unless told not to, refuses a call that comes back without its
-- reasoning, and refuses reasoning for the first reasoners.

return {
  contract = 1,
  name = "deepseek",
  version = "1.0.0",
  extends = "openai",
  embed_request = json.null,
  base_url = "https://api.deepseek.com",
  options = {
    max_tokens = "max_tokens",
    structured = "object",
    replay = "fill",
    thinking = {
      off = { thinking = { type = "disabled" } },
      on = { thinking = { type = "enabled" } },
      low = { thinking = { type = "enabled" }, reasoning_effort = "low" },
      medium = { thinking = { type = "enabled" }, reasoning_effort = "high" },
      high = { thinking = { type = "enabled" }, reasoning_effort = "high" },
      max = { thinking = { type = "enabled" }, reasoning_effort = "max" },
    },
    drop_thinking = { "temperature", "tool_choice" },
    rules = { { model = "%-r1", replay = "never" } },
  },
  capabilities = { vision = false, audio = false },
}
