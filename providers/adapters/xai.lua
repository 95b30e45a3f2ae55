-- xAI.

return {
  contract = 1,
  name = "xai",
  version = "1.0.0",
  extends = "openai",
  embed_request = json.null,
  base_url = "https://api.x.ai/v1",
  options = {
    max_tokens = "max_completion_tokens",
    thinking = { off = {}, on = {}, minimal = { reasoning_effort = "low" }, low = { reasoning_effort = "low" }, medium = { reasoning_effort = "low" }, high = { reasoning_effort = "high" }, max = { reasoning_effort = "high" } },
    rules = { { model = "^grok%-4", thinking = {} } },
  },
  capabilities = { audio = false },
}
