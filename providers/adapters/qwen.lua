-- Qwen at DashScope: most models think only in a stream and refuse to otherwise.

return {
  contract = 1,
  name = "qwen",
  version = "1.0.0",
  extends = "openai",
  base_url = "https://dashscope.aliyuncs.com/compatible-mode/v1",
  options = {
    max_tokens = "max_tokens",
    structured = "object",
    thinking = {
      off = { enable_thinking = false },
      on = { enable_thinking = true },
      minimal = { enable_thinking = true, thinking_budget = 512 },
      low = { enable_thinking = true, thinking_budget = 2048 },
      medium = { enable_thinking = true, thinking_budget = 8192 },
      high = { enable_thinking = true, thinking_budget = 24576 },
    },
    whole = { enable_thinking = false },
    drop_whole = { "thinking_budget" },
    codes = {
      throttling = "rate_limit", ["throttling.ratequota"] = "rate_limit", ["throttling.burstrate"] = "rate_limit",
      ["throttling.allocationquota"] = "rate_limit", limitrequests = "rate_limit", limit_requests = "rate_limit",
    },
  },
}
