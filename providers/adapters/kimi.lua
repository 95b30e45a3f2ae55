-- Kimi of Moonshot: temperature and its like are fixed, and a call must come back with
-- its reasoning.

return {
  contract = 1,
  name = "kimi",
  version = "1.0.0",
  extends = "openai",
  embed_request = json.null,
  base_url = "https://api.moonshot.cn/v1",
  options = {
    max_tokens = "max_tokens",
    structured = "object",
    replay = "fill",
    drop = { "temperature" },
    thinking = { off = { thinking = { type = "disabled" } }, on = { thinking = { type = "enabled" } } },
    rules = {
      {
        model = "k3",
        thinking = {
          off = {}, on = {}, minimal = { reasoning_effort = "low" }, low = { reasoning_effort = "low" },
          medium = { reasoning_effort = "high" }, high = { reasoning_effort = "high" }, max = { reasoning_effort = "max" },
        },
      },
      { model = "^moonshot%-v1", drop = {}, thinking = {}, replay = "never" },
    },
  },
  capabilities = { audio = false },
}
