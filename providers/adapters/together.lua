-- Together.

return {
  contract = 1,
  name = "together",
  version = "1.0.0",
  extends = "openai",
  base_url = "https://api.together.xyz/v1",
  options = { max_tokens = "max_tokens", thinking = { off = { reasoning = { enabled = false } }, on = { reasoning = { enabled = true } } }, rules = json.null },
}
