-- Voyage: embeddings alone.

local errors, read = use("_errors"), use("_read")
local get = json.get

local function embed_request(req, source)
  return {
    model = source.model, input = req.texts, output_dimension = req.dimensions,
    input_type = req.purpose == "query" and "query" or "document",
  }
end

return {
  contract = 1,
  name = "voyage",
  version = "1.0.0",
  base_url = "https://api.voyageai.com/v1",
  capabilities = {},
  headers = function() return { Authorization = "Bearer {{api_key}}" } end,
  classify_error = function(status, _, body) return errors.classified(status, body) end,
  embed_endpoint = "/embeddings",
  embed_request = embed_request,
  embed_response = function(body)
    return { vectors = read.vectors(body), usage = { input = get(body, "usage", "total_tokens") } }
  end,
}
