-- Kimi for coding.

return {
  contract = 1,
  name = "kimicode",
  version = "1.0.0",
  extends = "openai",
  embed_request = json.null,
  base_url = "https://api.kimi.com/coding",
  endpoint = "/v1/chat/completions",
  options = {
    max_tokens = "max_tokens",
    structured = "object",
    replay = "fill",
    drop = { "temperature" },
    thinking = { off = { thinking = { type = "disabled" } }, on = { thinking = { type = "enabled" } } },
  },
  capabilities = { audio = false },
}
