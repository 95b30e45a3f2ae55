-- A gateway that speaks the node's own form: the request as an adapter is given
-- it, and pieces as an adapter gives them, one JSON object a line.
-- docs/adapters.md says what each field means.

local get = json.get

local function message(m)
  local out = { role = m.role, text = m.text }
  if #m.parts > 0 then out.parts = m.parts end
  if #m.calls > 0 then
    out.calls = json.array()
    for i, c in ipairs(m.calls) do out.calls[i] = { id = c.id, name = c.name, arguments = json.raw(c.arguments) } end
  end
  out.call_id, out.name, out.failed, out.reasoning = m.call_id, m.name, m.failed, m.reasoning
  if m.replay then out.replay = json.raw(m.replay) end
  return out
end

local function transform_request(req, source)
  local body = { model = source.model, messages = json.array(), tools = req.tools, stream = req.stream }
  for i, m in ipairs(req.messages) do body.messages[i] = message(m) end
  body.max_tokens, body.temperature, body.thinking = req.max_tokens, req.temperature, req.thinking
  body.tool_choice, body.output_schema = req.tool_choice, req.output_schema
  return body
end

local fields = { "text", "reasoning", "refusal", "model", "finish", "usage", "tools", "replay", "server_blocks", "done", "error" }

-- piece takes the fields that there are; what a newer gateway says besides is
-- passed over. Items of replay keep their bytes.
local function piece(e, text)
  local out = {}
  for _, f in ipairs(fields) do out[f] = get(e, f) end
  if type(out.error) == "string" then out.error = { message = out.error } end
  if type(out.error) == "table" and not get(out.error, "kind") and not get(out.error, "status") then out.error.kind = "server" end
  if type(out.replay) == "table" then
    local items = json.array()
    for i in ipairs(out.replay) do items[i] = json.pick(text, "replay", i) end
    out.replay = items
  end
  return out
end

return {
  contract = 1,
  name = "server",
  version = "1.0.0",
  endpoint = "/v1/complete",
  framing = "ndjson",
  capabilities = { stream = true, tools = true, vision = true, audio = true, thinking = true, structured = true },
  headers = function() return { Authorization = "Bearer {{api_key}}" } end,
  transform_request = transform_request,
  transform_response = function(body, _, _, text)
    local out = piece(body, text)
    if not out.finish and not out.error then out.error = { kind = "server", message = "the answer is not whole" } end
    out.done = true
    return out
  end,
  transform_stream_chunk = function(event)
    if type(event.json) ~= "table" then return nil end
    return piece(event.json, event.data)
  end,
  classify_error = function(status, _, body)
    local e = type(body) == "table" and get(body, "error") or body
    if type(e) == "string" then return { status = status, message = e } end
    if type(e) ~= "table" then return { status = status } end
    return { kind = get(e, "kind"), status = status, code = get(e, "code"), message = get(e, "message"), retry_after = get(e, "retry_after") }
  end,
}
