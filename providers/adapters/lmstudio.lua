-- LM Studio.

return {
  contract = 1,
  name = "lmstudio",
  version = "1.0.0",
  extends = "openai",
  base_url = "http://127.0.0.1:1234/v1",
  options = {
    max_tokens = "max_tokens",
    think_tags = true,
    thinking = { off = { chat_template_kwargs = { enable_thinking = false } }, on = { chat_template_kwargs = { enable_thinking = true } } },
    rules = json.null,
  },
}
