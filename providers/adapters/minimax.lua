-- MiniMax: what it thinks stands in tags inside of the content and must stay in
-- the history, and errors come in a 200.

return {
  contract = 1,
  name = "minimax",
  version = "1.0.0",
  extends = "openai",
  embed_request = json.null,
  base_url = "https://api.minimax.io/v1",
  options = {
    max_tokens = "max_completion_tokens",
    structured = false,
    tool_choice = false,
    think_tags = true,
    replay = "always",
    thinking = {},
    rules = { { model = "^minimax%-m3", thinking = { off = { thinking = { type = "disabled" } }, on = { thinking = { type = "adaptive" } } } } },
  },
  capabilities = { audio = false, structured = false },
}
