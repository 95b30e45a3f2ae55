-- Voyage: embeddings alone.

local errors = use("_errors")
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
    local vectors = json.array()
    for i, d in ipairs(get(body, "data") or {}) do vectors[(get(d, "index") or i - 1) + 1] = get(d, "embedding") end
    return { vectors = vectors, usage = { input = get(body, "usage", "total_tokens") } }
  end,
}
