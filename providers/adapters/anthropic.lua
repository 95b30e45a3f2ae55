-- Anthropic's messages, and the servers that speak them.

local errors, order = use("_errors"), use("_order")
local read = use("_read")
local get = json.get
local str, list = read.str, read.list

local codes = {
  billing_error = "quota_exhausted", api_error = "server", timeout_error = "timeout", not_found_error = "model_not_found",
}

-- Answers --------------------------------------------------------------------

local finishes = {
  end_turn = "stop", stop_sequence = "stop", max_tokens = "length", model_context_window_exceeded = "length",
  tool_use = "tool_calls", pause_turn = "pause", compaction = "pause", refusal = "content_filter",
}

local function finish_of(reason)
  if str(reason) then return finishes[reason] or "stop" end
end

-- count keeps the figures: they are cumulative, so that each replaces the one
-- before. Some servers repeat the prompt as 0 at the end.
local function count(state, u)
  if type(u) ~= "table" then return nil end
  state.usage = state.usage or {}
  local all, input = state.usage, get(u, "input_tokens")
  if input ~= 0 or not all.input then all.input = input or all.input end
  all.cached = get(u, "cache_read_input_tokens") or all.cached
  all.cache_write = get(u, "cache_creation_input_tokens") or all.cache_write
  all.output = get(u, "output_tokens") or all.output
  all.reasoning = get(u, "output_tokens_details", "thinking_tokens") or all.reasoning
  local out, sum = {}, 0
  for k, v in pairs(all) do
    if type(v) == "number" then out[k] = v end
  end
  for _, k in ipairs({ "input", "cached", "cache_write" }) do sum = sum + (out[k] or 0) end
  out.prompt_total = sum
  return out
end

local function say(state, text)
  text = str(text)
  if text then state.said = (state.said or 0) + #text end
  return text
end

local function fault(e, status)
  local f = errors.fault(e, status, codes)
  local words = (f.message or ""):lower()
  if f.kind == "invalid_request" and (words:find("signature", 1, true) or words:find("thinking", 1, true)) then f.again = "without_replay" end
  return f
end

-- open begins a block; raw is its JSON.
local function open(state, b, key, raw)
  local kind = get(b, "type")
  local block = { kind = kind }
  state.blocks = state.blocks or {}
  state.blocks[key], state.last = block, block
  if kind == "text" then return { text = say(state, get(b, "text")) } end
  if kind == "tool_use" then
    state.called = (state.called or 0) + 1
    block.index = state.called
    local input = get(b, "input")
    if type(input) == "table" and (#input > 0 or next(input)) then block.input = input end
    return { tools = { { index = block.index, id = str(get(b, "id")), name = str(get(b, "name")) } } }
  end
  if kind == "thinking" then
    block.pieces = { str(get(b, "thinking")) }
    block.item = order.place(state, { type = "thinking", item = { type = "thinking", thinking = "", signature = str(get(b, "signature")) } })
    return { reasoning = str(get(b, "thinking")) }
  end
  if kind == "redacted_thinking" then
    order.place(state, { type = kind, item = raw })
    return nil
  end
  if not str(kind) then return nil end
  -- What the server's own tools did goes back in its place, whole.
  block.item, block.raw = order.place(state, { type = "content", item = raw }), b
  return { server_blocks = { kind } }
end

local function delta(state, block, d)
  local kind = get(d, "type")
  if kind == "text_delta" then return { text = say(state, get(d, "text")) } end
  if kind == "input_json_delta" then
    local more = str(get(d, "partial_json"))
    if not more then return nil end
    if block.index then
      block.input = nil
      return { tools = { { index = block.index, args = more } } }
    end
    block.json = block.json or {}
    table.insert(block.json, more)
  elseif kind == "thinking_delta" then
    local more = str(get(d, "thinking"))
    if more and block.pieces then table.insert(block.pieces, more) end
    return { reasoning = more }
  elseif kind == "signature_delta" and block.kind == "thinking" then
    block.item.item.signature = (block.item.item.signature or "") .. (str(get(d, "signature")) or "")
  elseif block.raw and str(get(d, "content")) then
    block.content = block.content or {}
    table.insert(block.content, d.content)
  end
end

local function close(block)
  if block.kind == "thinking" then
    block.item.item.thinking = table.concat(block.pieces)
  elseif block.index and block.input then
    return { tools = { { index = block.index, args = block.input } } }
  elseif block.raw and (block.json or block.content) then
    if block.json then
      local text = table.concat(block.json)
      block.raw.input = json.decode(text) ~= nil and json.raw(text) or json.empty_object
    end
    if block.content then block.raw.content = table.concat(block.content) end
    block.item.item = block.raw
  end
end

local function ended(state)
  for _, block in pairs(state.blocks or {}) do close(block) end
  return order.places(state)
end

local function transform_stream_chunk(event, state)
  if event.event == "@end" then
    local items = ended(state)
    return items and { replay = items } or nil
  end
  local e = event.json
  if type(e) ~= "table" then
    if event.data == "[DONE]" then return { done = true } end
    if event.event == "error" then return { error = fault(event.data, 0) } end
    return nil
  end
  local kind = get(e, "type")
  local key = get(e, "index") or "last"
  local block = state.blocks and state.blocks[key] or state.last
  if kind == "message_start" then
    return { model = str(get(e, "message", "model")), usage = count(state, get(e, "message", "usage")) }
  elseif kind == "content_block_start" then
    return open(state, get(e, "content_block") or {}, key, json.pick(event.data, "content_block"))
  elseif kind == "content_block_delta" then
    if not block then block = {} end
    return delta(state, block, get(e, "delta") or {})
  elseif kind == "content_block_stop" then
    return block and close(block) or nil
  elseif kind == "message_delta" then
    return { usage = count(state, get(e, "usage")), finish = finish_of(get(e, "delta", "stop_reason")) }
  elseif kind == "message_stop" then
    return { done = true }
  end
  local err = errors.envelope(e)
  if kind == "error" or event.event == "error" or err then return { error = fault(err or e, 0) } end
end

local function transform_response(body, state, _, text)
  local err = errors.envelope(body)
  if err and get(body, "content") == nil then return { error = fault(err, 200), done = true } end
  local out = { { model = str(get(body, "model")), usage = count(state, get(body, "usage")) } }
  local content = get(body, "content")
  for i, b in ipairs(type(content) == "table" and content or {}) do
    local raw = json.pick(text, "content", i)
    local piece = open(state, b, i, raw)
    if piece then out[#out + 1] = piece end
    local block = state.blocks[i]
    if block.kind == "thinking" then
      block.item.item, block.kind = raw, "whole"
    elseif block.index then
      out[#out + 1] = { tools = { { index = block.index, args = json.pick(text, "content", i, "input") } } }
    end
  end
  local finish = finish_of(get(body, "stop_reason"))
  if not finish then
    out[#out + 1] = { error = { kind = "server", code = "no_stop_reason", message = "the answer is not whole" } }
  end
  out[#out + 1] = { finish = finish, replay = order.places(state), done = true }
  return out
end

-- Requests -------------------------------------------------------------------

-- version_of gives the version in a model's name as a number, 4.6 for
-- claude-opus-4-6; nil for other models.
local function version_of(model)
  model = model:lower()
  if not model:find("claude", 1, true) then return nil end
  local major, minor = model:match("claude%-%a+%-(%d+)[%-.](%d+)")
  if not major then major, minor = model:match("claude%-(%d+)[%-.](%d+)") end
  if not major then major = model:match("claude%-%a+%-(%d+)") or model:match("claude%-(%d+)") end
  if not major then return nil end
  if not minor or #minor > 2 then minor = "0" end
  return tonumber(major) + math.min(tonumber(minor), 9.5) / 10
end

local function media(p)
  if p.type == "image" then
    return { type = "image", source = { type = "base64", media_type = p.media_type, data = p.data } }
  end
end

local function parts_of(m, out)
  for _, p in ipairs(m.parts) do
    local block = media(p)
    if block then
      out[#out + 1] = block
    elseif p.type == "text" and p.text:find("%S") then
      out[#out + 1] = { type = "text", text = p.text }
    end
  end
  return out
end

local function result(m)
  local block = { type = "tool_result", tool_use_id = m.call_id }
  local pictures = false
  for _, p in ipairs(m.parts) do pictures = pictures or p.type == "image" end
  if pictures then
    block.content = parts_of(m, json.array())
  elseif m.text ~= "" then
    block.content = m.text
  end
  if m.failed then block.is_error = true end
  return block
end

local function assistant(m, think)
  local out = json.array()
  local put = {}
  function put.text(text)
    if text:find("%S") then out[#out + 1] = { type = "text", text = text } end
  end
  function put.call(c)
    out[#out + 1] = { type = "tool_use", id = c.id, name = c.name, input = json.raw(c.arguments) }
  end
  function put.item(item, i)
    -- Thoughts of closed turns are worth nothing to the model, and a signature
    -- that has aged would have the whole request refused.
    local thought = item.type == "thinking" or item.type == "redacted_thinking"
    if item.item and (item.type == "content" or thought and think) then out[#out + 1] = json.pick(m.replay, i, "item") end
  end
  order.weave(m, put)
  return out
end

local function messages(req, o)
  local out, open_turn = json.array(), order.last_question(req.messages)
  for i, m in ipairs(req.messages) do
    local last = out[#out]
    if m.role == "assistant" then
      local content = assistant(m, o.replay == "all" or o.replay == "turn" and i > open_turn)
      if #content > 0 then out[#out + 1] = { role = "assistant", content = content } end
    elseif m.role ~= "system" then
      -- Results come first in the message after their calls, all of them together.
      if not last or last.role ~= "user" then
        last = { role = "user", content = json.array() }
      end
      if m.role == "tool" then
        table.insert(last.content, result(m))
      else
        parts_of(m, last.content)
      end
      if #last.content > 0 and out[#out] ~= last then out[#out + 1] = last end
    end
  end
  if out[1] and out[1].role ~= "user" then
    table.insert(out, 1, { role = "user", content = { { type = "text", text = "(The conversation goes on.)" } } })
  end
  return out
end

local budgets = { minimal = 1024, low = 2048, on = 4096, medium = 8192, high = 16384, max = 32768 }

-- think asks for thought in the words of the model's generation; true where it
-- is the manual kind, which allows neither temperature nor a forced tool.
local function think(req, body, o, version)
  local effort, style = req.thinking, o.thinking
  if not effort or style == false or version and version < 3.7 then return false end
  if style == "auto" then style = version and version >= 4.6 and "adaptive" or "enabled" end
  if effort == "off" then
    body.thinking = { type = version == 5.5 and body.model:lower():find("sonnet", 1, true) and "between_tools" or "disabled" }
    return false
  end
  if style == "adaptive" then
    body.thinking = { type = "adaptive", display = o.display or nil }
    if effort ~= "on" then body.output_config = { effort = effort == "minimal" and "low" or effort } end
    body.temperature = nil
    return false
  end
  local budget = budgets[effort]
  body.thinking = { type = "enabled", budget_tokens = budget }
  if body.max_tokens <= budget then body.max_tokens = body.max_tokens + budget end
  body.temperature = nil
  return true
end

local function cached(body, source)
  local o = source.options.cache
  if o == "auto" then o = source.base_url:find("api.anthropic.com", 1, true) end
  if not o then return end
  local mark = { type = "ephemeral" }
  if body.system then body.system[#body.system].cache_control = mark end
  local last = body.messages[#body.messages]
  local block = last and last.content[#last.content]
  if type(block) == "table" and last.role == "user" then block.cache_control = mark end
end

local function transform_request(req, source)
  local o, version = source.options, version_of(source.model)
  local most = version and version < 3.5 and math.min(o.max_tokens, 4096) or o.max_tokens
  local body = { model = source.model, max_tokens = req.max_tokens or most }
  local system = json.array()
  for _, m in ipairs(req.messages) do
    if m.role == "system" and m.text:find("%S") then system[#system + 1] = { type = "text", text = m.text } end
  end
  if req.output_schema and version and version < 4.5 then
    system[#system + 1] = {
      type = "text",
      text = "Answer with one JSON value that follows this JSON schema, and with nothing else: " .. json.encode(req.output_schema),
    }
  end
  if #system > 0 then body.system = system end
  body.messages = messages(req, o)
  body.temperature = req.temperature and math.min(req.temperature, 1)
  local manual = think(req, body, o, version)
  local called = #req.tools == 0 and order.called(req.messages) or {}
  if #called > 0 then
    -- Calls in the history are refused without their tools.
    body.tools, body.tool_choice = json.array(), { type = "none" }
    for i, name in ipairs(called) do body.tools[i] = { name = name, input_schema = { type = "object" } } end
  elseif #req.tools > 0 then
    body.tools = json.array()
    for i, t in ipairs(req.tools) do
      body.tools[i] = { name = t.name, description = str(t.description), input_schema = t.parameters }
    end
    local c = req.tool_choice
    if c and manual and c.mode ~= "none" then c = { mode = "auto" } end
    if c and c.mode == "tool" then
      body.tool_choice = { type = "tool", name = c.name }
    elseif c then
      body.tool_choice = { type = c.mode == "required" and "any" or c.mode }
    end
  end
  if req.output_schema and not (version and version < 4.5) then
    body.output_config = body.output_config or {}
    body.output_config.format = { type = "json_schema", schema = req.output_schema }
  end
  if req.stream then body.stream = true end
  cached(body, source)
  return body
end

local function headers(source)
  local o = source.options
  local out = { ["anthropic-version"] = o.version }
  if o.beta then out["anthropic-beta"] = o.beta end
  if o.auth == "bearer" then out.Authorization = "Bearer {{api_key}}" else out["x-api-key"] = "{{api_key}}" end
  return out
end

local function classify_error(status, _, body)
  local f = errors.classified(status, body, codes)
  if status == 404 and f.kind == "model_not_found" and not (f.message or ""):lower():find("model", 1, true) then f.kind = "invalid_request" end
  if type(body) == "table" and errors.envelope(body) then f.again = fault(errors.envelope(body), status).again end
  return f
end

return {
  contract = 1,
  name = "anthropic",
  version = "1.0.0",
  base_url = "https://api.anthropic.com",
  endpoint = function(_, source)
    return source.base_url:find("/v1/?$") and "/messages" or "/v1/messages"
  end,
  framing = "sse",
  tool_ids = "plain",
  capabilities = { stream = true, tools = true, vision = true, audio = false, thinking = true, structured = true },
  options = {
    -- version and beta are headers; beta is a comma list. auth = "bearer" sends
    -- the key as such, for other servers and for tokens of accounts.
    version = "2023-06-01",
    auth = "key",
    max_tokens = 8192,
    -- cache marks what the vendor may cache: true, false, or "auto" for its own
    -- server.
    cache = "auto",
    -- thinking: "auto" tells the words by the model's name, "enabled" with a
    -- budget, "adaptive" with an effort, false never asks. display is what an
    -- adaptive model shows of it.
    thinking = "auto",
    display = "summarized",
    -- replay of thoughts: those of the "turn" that is open, "all", or false.
    replay = "turn",
  },
  headers = headers,
  transform_request = transform_request,
  transform_response = transform_response,
  transform_stream_chunk = transform_stream_chunk,
  classify_error = classify_error,
}
