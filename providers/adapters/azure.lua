-- OpenAI models at Azure. The source's model is the name of the deployment. With the
-- option api_version it speaks to the older interface, which has it in the address.

return {
  contract = 1,
  name = "azure",
  version = "1.0.0",
  extends = "openai",
  base_url = "https://{resource}.openai.azure.com",
  options = { max_tokens = "max_completion_tokens", key_header = "api-key" },
  endpoint = function(_, source)
    if source.options.api_version then
      return "/openai/deployments/" .. escape(source.model) .. "/chat/completions?api-version=" .. escape(source.options.api_version)
    end
    if source.base_url:find("/openai/v1/?$") then return "/chat/completions" end
    return "/openai/v1/chat/completions"
  end,
}
