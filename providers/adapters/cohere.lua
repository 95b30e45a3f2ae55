-- Cohere's chat, version 2. Answers of version 1 are understood as well, for
-- gateways that still give them.

local errors = use("_errors")
local read = use("_read")
local get = json.get
local str, list = read.str, read.list

-- Answers --------------------------------------------------------------------

local finishes = {
  COMPLETE = "stop", STOP_SEQUENCE = "stop", MAX_TOKENS = "length", TOOL_CALL = "tool_calls", ERROR_LIMIT = "length",
  ERROR_TOXIC = "content_filter",
}

local failures = { ERROR = "server", TIMEOUT = "timeout", USER_CANCEL = "server" }

local function usage_of(u)
  if type(u) ~= "table" then return nil end
  local input = get(u, "tokens", "input_tokens")
  return {
    input = input, output = get(u, "tokens", "output_tokens"), cached = get(u, "cached_tokens"), prompt_total = input,
    billed_input = get(u, "billed_units", "input_tokens"), billed_output = get(u, "billed_units", "output_tokens"),
  }
end

local function fault(e, status)
  local f = errors.fault(e, status)
  if status == 498 then f.kind = "content_blocked" end
  if status == 499 then f.kind = "server" end
  if status == 404 then f.kind = "model_not_found" end
  return f
end

-- ended reads how an answer ended: a finish, or an error in its place.
local function ended(reason, err, piece)
  if failures[reason] then
    local text = type(err) == "string" and err or str(get(err, "message")) or "the model stopped with an error"
    piece.error = { kind = failures[reason], code = reason, message = text }
  elseif str(err) or type(err) == "table" then
    piece.error = fault(err, 0)
  elseif str(reason) then
    piece.finish = finishes[reason] or "stop"
  end
  return piece
end

local function content(state, c)
  if type(c) ~= "table" then return nil end
  local thought = str(get(c, "thinking"))
  if thought then state.thought = true end
  return { text = str(get(c, "text")), reasoning = thought }
end

local function call(c, index)
  return { tools = { { index = index, id = str(get(c, "id")), name = str(get(c, "function", "name")), args = get(c, "function", "arguments") } } }
end

local function plan(state, text)
  text = str(text)
  if not text then return nil end
  state.plan = state.plan or {}
  table.insert(state.plan, text)
  return { reasoning = text }
end

local function material(state)
  if state.plan then return { { type = "tool_plan", plan = table.concat(state.plan) } } end
end

local function old_calls(list)
  local out = {}
  for i, c in ipairs(type(list) == "table" and list or {}) do
    out[#out + 1] = { index = i, name = str(get(c, "name")), args = get(c, "parameters") or json.empty_object }
  end
  return #out > 0 and out or nil
end

local old = {
  ["text-generation"] = function(_, e) return { text = str(get(e, "text")) } end,
  ["tool-calls-generation"] = function(_, e) return { tools = old_calls(get(e, "tool_calls")) } end,
  ["stream-end"] = function(_, e)
    local piece = { usage = usage_of(get(e, "response", "meta")), done = true }
    return ended(get(e, "finish_reason"), nil, piece)
  end,
}

local handlers = {
  ["content-start"] = function(state, e) return content(state, get(e, "delta", "message", "content")) end,
  ["content-delta"] = function(state, e) return content(state, get(e, "delta", "message", "content")) end,
  ["tool-plan-delta"] = function(state, e) return plan(state, get(e, "delta", "message", "tool_plan")) end,
  ["tool-call-start"] = function(_, e) return call(get(e, "delta", "message", "tool_calls"), get(e, "index")) end,
  ["tool-call-delta"] = function(_, e) return call(get(e, "delta", "message", "tool_calls"), get(e, "index")) end,
  ["message-end"] = function(_, e)
    return ended(get(e, "delta", "finish_reason"), get(e, "delta", "error"), { usage = usage_of(get(e, "delta", "usage")) })
  end,
}

local function transform_stream_chunk(event, state)
  if event.event == "@end" then
    local items = material(state)
    return items and { replay = items } or nil
  end
  local e = event.json
  if type(e) ~= "table" then
    if event.data == "[DONE]" then return { done = true } end
    if event.event == "error" then return { error = fault(event.data, 0) } end
    return nil
  end
  local kind = get(e, "type")
  if kind == nil and get(e, "event_type") ~= nil then
    local handler = old[e.event_type]
    return handler and handler(state, e) or nil
  end
  local handler = handlers[type(kind) == "string" and kind or event.event]
  if handler then return handler(state, e) end
  local err = errors.envelope(e)
  if err and (event.event == "error" or kind == nil) then return { error = fault(err, 0) } end
end

local function transform_response(body, state)
  local m = get(body, "message")
  if type(m) ~= "table" then
    if get(body, "text") ~= nil and get(body, "finish_reason") then
      local piece = { text = str(body.text), tools = old_calls(get(body, "tool_calls")), usage = usage_of(get(body, "meta")), done = true }
      return ended(body.finish_reason, nil, piece)
    end
    local err = errors.envelope(body)
    return { error = err and fault(err, 200) or { kind = "server", code = "no_message", message = "the answer holds no message" }, done = true }
  end
  local out = { { usage = usage_of(get(body, "usage")) }, plan(state, get(m, "tool_plan")) }
  local parts = get(m, "content")
  for _, c in ipairs(type(parts) == "table" and parts or {}) do out[#out + 1] = content(state, c) end
  local calls = get(m, "tool_calls")
  for i, c in ipairs(type(calls) == "table" and calls or {}) do out[#out + 1] = call(c, i) end
  out[#out + 1] = ended(get(body, "finish_reason"), nil, { replay = material(state), done = true })
  return out
end

-- Requests -------------------------------------------------------------------

local function content_of(m)
  local media = false
  for _, p in ipairs(m.parts) do media = media or p.type == "image" end
  if not media then return m.text end
  local out = json.array()
  for _, p in ipairs(m.parts) do
    if p.type == "image" then
      out[#out + 1] = { type = "image_url", image_url = { url = "data:" .. p.media_type .. ";base64," .. p.data } }
    elseif p.text and p.text ~= "" then
      out[#out + 1] = { type = "text", text = p.text }
    end
  end
  return out
end

local function assistant(m)
  local out = { role = "assistant" }
  if m.text ~= "" then out.content = m.text end
  if #m.calls == 0 then return out end
  -- The plan goes back with its calls; without calls it is no field.
  for i, item in ipairs(read.items(m)) do
    if item.type == "tool_plan" then out.tool_plan = json.pick(m.replay, i, "plan") end
  end
  out.tool_calls = json.array()
  for i, c in ipairs(m.calls) do
    out.tool_calls[i] = { id = c.id, type = "function", ["function"] = { name = c.name, arguments = c.arguments } }
  end
  return out
end

local budgets = { minimal = 512, low = 2048, medium = 8192, high = 16384, max = 31000 }

local function transform_request(req, source)
  local body = { model = source.model, messages = json.array() }
  for _, m in ipairs(req.messages) do
    if m.role == "assistant" then
      local out = assistant(m)
      if out.content or out.tool_calls then table.insert(body.messages, out) end
    elseif m.role == "tool" then
      table.insert(body.messages, { role = "tool", tool_call_id = m.call_id, content = m.text })
    else
      table.insert(body.messages, { role = m.role, content = content_of(m) })
    end
  end
  if #req.tools > 0 then
    body.tools = json.array()
    local only = req.tool_choice and req.tool_choice.mode == "tool" and req.tool_choice.name
    for _, t in ipairs(req.tools) do
      -- One tool cannot be named, but all others can be left out.
      if not only or only == t.name then
        table.insert(body.tools, { type = "function", ["function"] = { name = t.name, description = t.description, parameters = t.parameters } })
      end
    end
    local mode = req.tool_choice and req.tool_choice.mode
    if mode == "none" then body.tool_choice = "NONE" elseif mode == "required" or mode == "tool" then body.tool_choice = "REQUIRED" end
  end
  body.max_tokens, body.temperature = req.max_tokens, req.temperature and math.min(req.temperature, 1)
  if req.thinking == "off" then
    body.thinking = { type = "disabled" }
  elseif req.thinking then
    body.thinking = { type = "enabled", token_budget = budgets[req.thinking] }
  end
  if req.output_schema then body.response_format = { type = "json_object", json_schema = req.output_schema } end
  body.stream = req.stream
  return body
end

return {
  contract = 1,
  name = "cohere",
  version = "1.0.0",
  base_url = "https://api.cohere.com",
  endpoint = "/v2/chat",
  framing = "sse",
  capabilities = { stream = true, tools = true, vision = true, audio = false, thinking = true, structured = true },
  headers = function() return { Authorization = "Bearer {{api_key}}" } end,
  transform_request = transform_request,
  transform_response = transform_response,
  transform_stream_chunk = transform_stream_chunk,
  classify_error = function(status, _, body)
    local err = type(body) == "table" and errors.envelope(body)
    if err then return fault(err, status) end
    return errors.classified(status, body)
  end,
  embed_endpoint = "/v2/embed",
  embed_request = function(req, source)
    return {
      model = source.model, texts = req.texts, output_dimension = req.dimensions, embedding_types = { "float" },
      input_type = req.purpose == "query" and "search_query" or "search_document",
    }
  end,
  embed_response = function(body)
    return { vectors = get(body, "embeddings", "float"), usage = { input = get(body, "meta", "billed_units", "input_tokens") } }
  end,
}
