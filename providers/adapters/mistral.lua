-- Mistral: ids of calls are nine letters or digits, and what a model thought is a
-- part of its content.

return {
  contract = 1,
  name = "mistral",
  version = "1.0.0",
  extends = "openai",
  base_url = "https://api.mistral.ai/v1",
  tool_ids = "nine",
  options = {
    max_tokens = "max_tokens",
    stream_usage = false,
    required = "any",
    replay = "always",
    between = "(The tools have answered.)",
    tool_names = true,
    thinking = {
      off = {}, on = { prompt_mode = "reasoning" }, minimal = { prompt_mode = "reasoning" }, low = { prompt_mode = "reasoning" },
      medium = { prompt_mode = "reasoning" }, high = { prompt_mode = "reasoning" }, max = { prompt_mode = "reasoning" },
    },
    rules = {
      -- Only these have the mode; others refuse it.
      { model = "^mistral%-[lst]", thinking = {} }, { model = "^codestral", thinking = {} }, { model = "^ministral", thinking = {} },
      { model = "^pixtral", thinking = {} }, { model = "^devstral", thinking = {} }, { model = "^open%-", thinking = {} },
      {
        model = "^mistral%-medium%-3%.5",
        thinking = {
          off = { reasoning_effort = "none" }, on = { reasoning_effort = "high" }, minimal = { reasoning_effort = "low" }, low = { reasoning_effort = "low" },
          medium = { reasoning_effort = "medium" }, high = { reasoning_effort = "high" }, max = { reasoning_effort = "high" },
        },
      },
    },
    codes = { ["3280"] = "invalid_request", ["1500"] = "model_not_found" },
  },
}
