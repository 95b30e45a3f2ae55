-- GitHub Models.

return {
  contract = 1,
  name = "github",
  version = "1.0.0",
  extends = "openai",
  base_url = "https://models.github.ai/inference",
  options = { rules = { { model = "/o%d", drop = { "temperature" }, max_tokens = "max_completion_tokens" }, { model = "/gpt%-5", drop = { "temperature" }, max_tokens = "max_completion_tokens" } }, max_tokens = "max_tokens" },
}
