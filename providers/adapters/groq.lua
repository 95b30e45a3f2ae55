-- Groq: reasoning comes in a field of its own when asked for.

return {
  contract = 1,
  name = "groq",
  version = "1.0.0",
  extends = "openai",
  embed_request = json.null,
  base_url = "https://api.groq.com/openai/v1",
  options = {
    max_tokens = "max_completion_tokens",
    replay = "never",
    thinking = {
      off = {}, on = { reasoning_format = "parsed" }, minimal = { reasoning_effort = "low" }, low = { reasoning_effort = "low" },
      medium = { reasoning_effort = "medium" }, high = { reasoning_effort = "high" }, max = { reasoning_effort = "high" },
    },
    rules = json.null,
  },
}
