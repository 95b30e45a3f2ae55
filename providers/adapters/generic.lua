-- Any other server that speaks chat completions: only what all of them know is sent.

return {
  contract = 1,
  name = "generic",
  version = "1.0.0",
  extends = "openai",
  base_url = json.null,
  options = { max_tokens = "max_tokens", thinking = json.null, rules = json.null, structured = "object" },
}
