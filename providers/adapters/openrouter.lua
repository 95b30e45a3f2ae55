-- OpenRouter: one word for thinking over all models, and reasoning that must come back
-- as it was sent.

return {
  contract = 1,
  name = "openrouter",
  version = "1.0.0",
  extends = "openai",
  base_url = "https://openrouter.ai/api/v1",
  options = {
    max_tokens = "max_tokens",
    thinking = {
      off = { reasoning = { enabled = false } }, on = { reasoning = { enabled = true } }, minimal = { reasoning = { effort = "minimal" } },
      low = { reasoning = { effort = "low" } }, medium = { reasoning = { effort = "medium" } },
      high = { reasoning = { effort = "high" } }, max = { reasoning = { effort = "xhigh" } },
    },
    rules = json.null,
  },
}
