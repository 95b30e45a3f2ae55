-- A gateway that speaks the node's own form: the request as an adapter is given
-- it, and pieces as an adapter gives them, one JSON object a line.
-- docs/adapters.md says what each field means.

local read = use("_read")
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

local finishes = { stop = true, length = true, tool_calls = true, content_filter = true, pause = true }

local kinds = {
  auth = true, quota_exhausted = true, rate_limit = true, overloaded = true, server = true, timeout = true, invalid_request = true,
  context_overflow = true, model_not_found = true, content_blocked = true, tool_use_failed = true, malformed_tool_call = true,
}

local figures = { "input", "output", "cached", "reasoning", "cache_write", "prompt_total", "total", "billed_input", "billed_output" }

-- fault takes what is known of an error.
local function fault(e, status)
  if type(e) ~= "table" then return { kind = not status and "server" or nil, status = status, message = read.str(e) } end
  local kind, claimed = get(e, "kind"), read.num(get(e, "status"))
  if not kinds[kind] then kind = nil end
  if not kind and not status and not claimed then kind = "server" end
  local code = get(e, "code")
  return {
    kind = kind, status = status or claimed, code = (type(code) == "string" or type(code) == "number") and code or nil,
    message = read.str(get(e, "message")), retry_after = read.num(get(e, "retry_after")),
  }
end

local function tools(list)
  local out = json.array()
  for _, t in ipairs(read.list(list)) do
    out[#out + 1] = { index = get(t, "index"), id = read.str(get(t, "id")), name = read.str(get(t, "name")), args = get(t, "args"), whole = get(t, "whole") }
  end
  return #out > 0 and out or nil
end

-- piece takes the fields that are known; what a newer gateway says besides is
-- passed over. Items of replay keep their bytes.
local function piece(e, text)
  local out = { tools = tools(get(e, "tools")), done = get(e, "done") == true or nil }
  for _, f in ipairs({ "text", "reasoning", "refusal", "model" }) do out[f] = read.str(get(e, f)) end
  local finish, usage = get(e, "finish"), get(e, "usage")
  if finishes[finish] then out.finish = finish end
  if type(usage) == "table" then
    out.usage = {}
    for _, f in ipairs(figures) do out.usage[f] = read.num(get(usage, f)) end
  end
  local items, blocks = json.array(), json.array()
  for i, item in ipairs(read.list(get(e, "replay"))) do
    if type(item) == "table" and #item == 0 and getmetatable(item) ~= "json.array" then items[#items + 1] = json.pick(text, "replay", i) end
  end
  for _, b in ipairs(read.list(get(e, "server_blocks"))) do blocks[#blocks + 1] = read.str(b) end
  if #items > 0 then out.replay = items end
  if #blocks > 0 then out.server_blocks = blocks end
  if get(e, "error") then out.error = fault(e.error) end
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
    return fault(type(body) == "table" and get(body, "error") or body, status)
  end,
}
