-- GLM of Zhipu and z.ai: arguments of calls stream only when asked to, and error codes
-- are numbers.

return {
  contract = 1,
  name = "glm",
  version = "1.0.0",
  extends = "openai",
  base_url = "https://open.bigmodel.cn/api/paas/v4",
  options = {
    max_tokens = "max_tokens",
    structured = "object",
    thinking = { off = { thinking = { type = "disabled" } }, on = { thinking = { type = "enabled" } } },
    rules = {
      {
        model = "^glm%-5%.3",
        thinking = {
          off = {}, on = {}, minimal = { reasoning_effort = "low" }, low = { reasoning_effort = "low" },
          medium = { reasoning_effort = "high" }, high = { reasoning_effort = "high" }, max = { reasoning_effort = "max" },
        },
      },
    },
    tool_stream = { tool_stream = true },
    required = "auto",
  },
  capabilities = { audio = false },
}
