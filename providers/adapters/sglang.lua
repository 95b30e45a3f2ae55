-- An SGLang server; it may close a stream after whole calls without a finish reason.

return {
  contract = 1,
  name = "sglang",
  version = "1.0.0",
  extends = "openai",
  base_url = json.null,
  options = {
    max_tokens = "max_tokens",
    think_tags = true,
    thinking = { off = { chat_template_kwargs = { enable_thinking = false } }, on = { chat_template_kwargs = { enable_thinking = true } } },
    rules = json.null,
  },
}
