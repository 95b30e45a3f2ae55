-- OpenAI's responses, and the servers that speak them.

local errors, order, media = use("_errors"), use("_order"), use("_media")
local read = use("_read")
local get = json.get
local str, list = read.str, read.list

-- Answers --------------------------------------------------------------------

local function usage_of(u)
  if type(u) ~= "table" then return nil end
  return {
    input = get(u, "input_tokens"), output = get(u, "output_tokens"), total = get(u, "total_tokens"),
    cached = get(u, "input_tokens_details", "cached_tokens"), reasoning = get(u, "output_tokens_details", "reasoning_tokens"),
    prompt_total = get(u, "input_tokens"),
  }
end

local function fault(e, status, source)
  local f = errors.fault(e, status, source.options.codes)
  if f.message:find("required following item", 1, true) or f.message:find("encrypted content", 1, true) then f.again = "without_replay" end
  return f
end

-- item_of gives what is known of the item that an event is about: by its place in
-- the output, else by its id, else the last one. Some servers give an item a new
-- id in every event, others no place.
local function item_of(state, e, id)
  local at = get(e, "output_index")
  state.by_index, state.by_id = state.by_index or {}, state.by_id or {}
  id = id or str(get(e, "item_id"))
  local item
  if type(at) == "number" then
    item = state.by_index[at]
  elseif id then
    item = state.by_id[id]
  else
    item = state.last
  end
  return item, at, id
end

local function begin(state, e, kind, id)
  local item, at, key = item_of(state, e, id)
  if item and (item.kind == kind or not kind) and not (item.done and type(at) ~= "number" and not key) then return item end
  item = { kind = kind }
  if type(at) == "number" then state.by_index[at] = item end
  if key then state.by_id[key] = item end
  state.last = item
  return item
end

-- find gives the item of a delta; one whose beginning was not seen begins here.
local function find(state, e, kind)
  local item, at = item_of(state, e)
  if item and (item.kind == kind or kind == nil) then return item end
  if not item and type(at) ~= "number" and state.last and state.last.kind == kind and not state.last.done then return state.last end
  return begin(state, e, kind)
end

local function index_of(state, item)
  if not item.index then
    state.called = (state.called or 0) + 1
    item.index = state.called
  end
  return item.index
end

local function say(state, text)
  text = str(text)
  if text then state.said = (state.said or 0) + #text end
  return text
end

local function custom(text) return { input = text } end

-- texts gives all text of an item's parts of one type.
local function texts(parts, kind, field)
  local out = {}
  for _, p in ipairs(type(parts) == "table" and parts or {}) do
    if get(p, "type") == kind then out[#out + 1] = str(get(p, field)) end
  end
  return table.concat(out)
end

-- whole takes a finished item: what its deltas did not say is said now.
local function whole(state, item, it, raw)
  item.done = true
  local kind = get(it, "type")
  if kind == "message" then
    local text, no = texts(get(it, "content"), "output_text", "text"), texts(get(it, "content"), "refusal", "refusal")
    return { text = not item.spoke and say(state, text) or nil, refusal = not item.refused and str(no) or nil }
  elseif kind == "function_call" then
    return { tools = { {
      index = index_of(state, item), id = str(get(it, "call_id")), name = str(get(it, "name")),
      args = str(get(it, "arguments")), whole = str(get(it, "arguments")) ~= nil,
    } } }
  elseif kind == "custom_tool_call" then
    return { tools = { { index = index_of(state, item), id = str(get(it, "call_id")), name = str(get(it, "name")), args = custom(str(get(it, "input")) or "") } } }
  elseif kind == "reasoning" then
    order.place(state, { type = "reasoning", item = raw })
    local text = texts(get(it, "summary"), "summary_text", "text")
    if text == "" then text = texts(get(it, "content"), "reasoning_text", "text") end
    return { reasoning = not item.thought and str(text) or nil }
  elseif str(kind) then
    order.place(state, { type = "content", item = raw })
    return { server_blocks = { kind } }
  end
end

local function added(state, e)
  local it = get(e, "item")
  local kind = str(get(it, "type"))
  if not kind then return nil end
  local item = begin(state, e, kind, str(get(it, "id")))
  if kind == "function_call" then
    return { tools = { { index = index_of(state, item), id = str(get(it, "call_id")), name = str(get(it, "name")), args = str(get(it, "arguments")) } } }
  elseif kind == "custom_tool_call" then
    return { tools = { { index = index_of(state, item), id = str(get(it, "call_id")), name = str(get(it, "name")) } } }
  end
end

local function done_item(state, e, raw)
  local it = get(e, "item")
  if type(it) ~= "table" then return nil end
  local kind, id = str(get(it, "type")), str(get(it, "id"))
  local item = item_of(state, e, id)
  if not item and type(get(e, "output_index")) ~= "number" and state.last and state.last.kind == kind and not state.last.done then item = state.last end
  return whole(state, item or begin(state, e, kind, id), it, raw)
end

local function failed(e, source)
  return { error = fault(errors.envelope(e) or e, 0, source) }
end

-- last reads the whole response that ends a stream, or is the answer.
local function last(state, r, source, text, path)
  local out = { { model = str(get(r, "model")), usage = usage_of(get(r, "usage")) } }
  local status = get(r, "status")
  if status == "failed" or status == "cancelled" or get(r, "error") then
    local e = get(r, "error") or { code = status, message = "the server gave up the answer" }
    out[2] = { error = fault(e, 0, source) }
    return out
  end
  local output = get(r, "output")
  if not state.last and type(output) == "table" then
    for i, it in ipairs(output) do
      local raw
      if path then raw = json.pick(text, path, "output", i) else raw = json.pick(text, "output", i) end
      local piece = whole(state, begin(state, { output_index = i }, str(get(it, "type"))), it, raw)
      if piece then out[#out + 1] = piece end
    end
  end
  local finish
  if status == "completed" or status == nil then
    finish = "stop"
  elseif status == "incomplete" then
    finish = get(r, "incomplete_details", "reason") == "content_filter" and "content_filter" or "length"
  end
  out[#out + 1] = { finish = finish }
  return out
end

local handlers = {
  ["response.output_item.added"] = function(state, e) return added(state, e) end,
  ["response.output_item.done"] = function(state, e, _, text) return done_item(state, e, json.pick(text, "item")) end,
  ["response.output_text.delta"] = function(state, e)
    find(state, e, "message").spoke = true
    return { text = say(state, get(e, "delta")) }
  end,
  ["response.refusal.delta"] = function(state, e)
    find(state, e, "message").refused = true
    return { refusal = str(get(e, "delta")) }
  end,
  ["response.function_call_arguments.delta"] = function(state, e)
    return { tools = { { index = index_of(state, find(state, e, "function_call")), args = str(get(e, "delta")) } } }
  end,
  ["response.function_call_arguments.done"] = function(state, e)
    local args = str(get(e, "arguments"))
    return args and { tools = { { index = index_of(state, find(state, e, "function_call")), name = str(get(e, "name")), args = args, whole = true } } } or nil
  end,
  ["response.custom_tool_call_input.done"] = function(state, e)
    return { tools = { { index = index_of(state, find(state, e, "custom_tool_call")), args = custom(str(get(e, "input")) or "") } } }
  end,
  ["response.reasoning_summary_text.delta"] = function(state, e)
    find(state, e, "reasoning").thought = true
    return { reasoning = str(get(e, "delta")) }
  end,
  ["response.completed"] = function(state, e, source, text) return last(state, get(e, "response"), source, text, "response") end,
  error = function(_, e, source) return failed(e, source) end,
}
handlers["response.reasoning_text.delta"] = handlers["response.reasoning_summary_text.delta"]
handlers["response.incomplete"] = handlers["response.completed"]
handlers["response.failed"] = handlers["response.completed"]
handlers["response.cancelled"] = handlers["response.completed"]
handlers["response.done"] = handlers["response.completed"]

local function transform_stream_chunk(event, state, source)
  if event.event == "@end" then
    local items = order.places(state)
    return items and { replay = items } or nil
  end
  local e = event.json
  if type(e) ~= "table" then
    if event.data == "[DONE]" then return { done = true } end
    if event.event == "error" then return { error = fault(event.data, 0, source) } end
    return nil
  end
  local kind = get(e, "type")
  local handler = handlers[type(kind) == "string" and kind or event.event]
  if handler then return handler(state, e, source, event.data) end
  if get(e, "error") then return failed(e, source) end
end

local function transform_response(body, state, source, text)
  if get(body, "output") == nil then
    local err = errors.envelope(body)
    if err then return { error = fault(err, 200, source), done = true } end
    return { error = { kind = "server", code = "no_output", message = "the answer holds no output" } }
  end
  local out = last(state, body, source, text)
  out[#out + 1] = { replay = order.places(state), done = true }
  return out
end

-- Requests -------------------------------------------------------------------

local function content_of(m)
  local plain = true
  for _, p in ipairs(m.parts) do plain = plain and p.data == nil end
  if plain then return m.text end
  local out = json.array()
  for _, p in ipairs(m.parts) do
    if p.type == "image" then
      out[#out + 1] = { type = "input_image", image_url = "data:" .. p.media_type .. ";base64," .. p.data }
    elseif p.type == "audio" then
      out[#out + 1] = { type = "input_audio", input_audio = { data = p.data, format = media.sound(p.media_type) } }
    elseif p.text ~= "" then
      out[#out + 1] = { type = "input_text", text = p.text }
    end
  end
  return out
end

local function assistant(m, source, out)
  local put, held = {}, json.array()
  local function flush()
    for _, h in ipairs(held) do out[#out + 1] = h end
    held = json.array()
  end
  function put.text(text)
    flush()
    out[#out + 1] = { type = "message", role = "assistant", content = { { type = "output_text", text = text } } }
  end
  function put.call(c)
    flush()
    out[#out + 1] = { type = "function_call", call_id = c.id, name = c.name, arguments = c.arguments }
  end
  function put.item(item, i)
    -- An item without its encrypted content is only an id, which the server does
    -- not know when it was told not to store.
    local secret = str(json.get(item, "item", "encrypted_content"))
    if item.type ~= "content" and (item.type ~= "reasoning" or not secret and not source.options.store) then return end
    if item.item then held[#held + 1] = json.pick(m.replay, i, "item") end
  end
  order.weave(m, put)
  -- Reasoning after which nothing follows is refused: held items end here.
end

local function input(req, source)
  local out = json.array()
  for _, m in ipairs(req.messages) do
    if m.role == "assistant" then
      assistant(m, source, out)
    elseif m.role == "tool" then
      local content = content_of(m)
      out[#out + 1] = { type = "function_call_output", call_id = m.call_id, output = content }
    elseif m.role == "user" then
      out[#out + 1] = { type = "message", role = "user", content = content_of(m) }
    end
  end
  return out
end

local efforts = { off = "none", minimal = "minimal", low = "low", medium = "medium", high = "high", max = "xhigh" }

local function think(req, source)
  local effort, name = req.thinking, source.model:lower()
  if not effort then return nil end
  if not (name:find("^gpt%-[5-9]") or name:find("^o%d") or source.options.thinks) then return nil end
  return { effort = efforts[effort], summary = effort ~= "off" and source.options.summary or nil }
end

local function transform_request(req, source)
  local o = source.options
  local system = {}
  for _, m in ipairs(req.messages) do
    if m.role == "system" then system[#system + 1] = m.text end
  end
  local body = { model = source.model, input = input(req, source) }
  if #system > 0 then body.instructions = table.concat(system, "\n\n") end
  if #req.tools > 0 then
    body.tools = json.array()
    for i, t in ipairs(req.tools) do
      body.tools[i] = { type = "function", name = t.name, description = t.description, parameters = t.parameters, strict = false }
    end
    local c = req.tool_choice
    if c then body.tool_choice = c.mode == "tool" and { type = "function", name = c.name } or c.mode end
  end
  body.max_output_tokens = req.max_tokens
  body.reasoning = think(req, source)
  local name = source.model:lower()
  if not (name:find("^gpt%-5") or name:find("^o%d")) then body.temperature = req.temperature end
  if req.output_schema then
    body.text = { format = { type = "json_schema", name = "answer", schema = req.output_schema, strict = media.strict(req.output_schema) } }
  end
  body.store = o.store and true or false
  if not o.store and o.include then body.include = { "reasoning.encrypted_content" } end
  if req.stream then body.stream = true end
  return body
end

local function headers(source)
  if source.base_url:find(".azure.com", 1, true) then return { ["api-key"] = "{{api_key}}" } end
  return { Authorization = "Bearer {{api_key}}" }
end

local function classify_error(status, _, body, source)
  local f = errors.classified(status, body, source.options.codes)
  local err = type(body) == "table" and errors.envelope(body)
  if err then f.again = fault(err, status, source).again end
  return f
end

return {
  contract = 1,
  name = "openai-responses",
  version = "1.0.0",
  base_url = "https://api.openai.com/v1",
  endpoint = "/responses",
  framing = "sse",
  capabilities = { stream = true, tools = true, vision = true, audio = false, thinking = true, structured = true },
  options = {
    -- store lets the server keep answers; without it reasoning comes back
    -- encrypted, where include is set.
    store = false,
    include = true,
    summary = "auto",
    -- thinks tells that a model whose name does not say so can be asked to think.
    thinks = false,
  },
  headers = headers,
  transform_request = transform_request,
  transform_response = transform_response,
  transform_stream_chunk = transform_stream_chunk,
  classify_error = classify_error,
}
