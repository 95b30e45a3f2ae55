-- Ollama's own chat, at home without a key, in its cloud with one.

local errors = use("_errors")
local read = use("_read")
local get = json.get
local str, list = read.str, read.list

-- Answers --------------------------------------------------------------------

-- inner reads the error of the model runner that may stand inside the text.
local function inner(text)
  local from = text:find("{", 1, true)
  local e = from and json.decode(text:sub(from))
  local err = type(e) == "table" and errors.envelope(e)
  return type(err) == "table" and err or nil
end

local function fault(e, status)
  if type(e) == "table" then return errors.fault(e, status) end
  local text = type(e) == "string" and e or ""
  local deep = inner(text)
  local f = errors.fault(deep or text, status)
  local words = text:lower()
  if words:find("invalid tool call arguments", 1, true) or words:find("error parsing tool call", 1, true) then
    f.kind = "malformed_tool_call"
  elseif words:find("not found", 1, true) and words:find("model", 1, true) then
    f.kind = "model_not_found"
  elseif words:find("does not support", 1, true) then
    f.kind = "invalid_request"
  elseif words:find("server busy", 1, true) then
    f.kind = "overloaded"
  elseif words:find("unexpected eof", 1, true) or words:find("runner", 1, true) and not deep then
    f.kind = "server"
  end
  if f.status == 0 and status > 0 then f.status = status end
  if f.message == "" then f.message = text end
  return f
end

local function calls(list, state, text)
  local out = {}
  for i, c in ipairs(list) do
    state.called = (state.called or 0) + 1
    local args = get(c, "function", "arguments")
    -- Servers repeat the index, so that only the count tells calls apart.
    out[#out + 1] = {
      index = state.called, id = str(get(c, "id")), name = str(get(c, "function", "name")),
      args = type(args) == "table" and json.pick(text, "message", "tool_calls", i, "function", "arguments") or args,
      whole = type(args) == "string" or nil,
    }
  end
  return out
end

local function usage_of(e)
  local input, output = get(e, "prompt_eval_count"), get(e, "eval_count")
  if input == nil and output == nil then return nil end
  return { input = input, output = output, prompt_total = input }
end

local finishes = { stop = "stop", length = "length", load = "stop", unload = "stop" }

local function piece(e, state, text)
  if get(e, "error") then return { error = fault(e.error, 0) } end
  local m = get(e, "message")
  local out = {
    text = str(get(m, "content")) or str(get(e, "response")), reasoning = str(get(m, "thinking")) or str(get(e, "thinking")), model = str(get(e, "model")),
  }
  local list = get(m, "tool_calls")
  if type(list) == "table" then out.tools = calls(list, state, text) end
  if out.reasoning then state.thought = true end
  if get(e, "done") == true then
    out.finish = finishes[str(get(e, "done_reason")) or "stop"] or "stop"
    out.usage = usage_of(e)
    if state.thought then out.replay = { { type = "reasoning_content" } } end
    out.done = true
  end
  return out
end

local function transform_stream_chunk(event, state)
  local e = event.json
  if event.event == "@end" or type(e) ~= "table" then return nil end
  return piece(e, state, event.data)
end

local function transform_response(body, state, _, text)
  local out = piece(body, state, text)
  if not out.error and not out.finish then
    out.error = { kind = "server", code = "not_done", message = "the answer is not whole" }
  end
  return out
end

-- Requests -------------------------------------------------------------------

local function message(m, o)
  local out = { role = m.role, content = m.text }
  for _, p in ipairs(m.parts) do
    if p.type == "image" then
      out.images = out.images or json.array()
      table.insert(out.images, p.data)
    end
  end
  if m.role == "tool" then
    out.tool_name, out.tool_call_id = m.name, m.call_id
  elseif m.role == "assistant" then
    if m.replay and o.replay ~= false and #m.calls > 0 then out.thinking = m.reasoning end
    if #m.calls > 0 then out.tool_calls = json.array() end
    for i, c in ipairs(m.calls) do
      out.tool_calls[i] = { id = c.id, ["function"] = { index = json.raw(tostring(i - 1)), name = c.name, arguments = json.raw(c.arguments) } }
    end
  end
  return out
end

local function think(effort)
  if not effort then return nil end
  if effort == "off" then return false end
  if effort == "on" then return true end
  return effort == "minimal" and "low" or effort
end

local function transform_request(req, source)
  local o = source.options
  local body = { model = source.model, messages = json.array(), stream = req.stream }
  for _, m in ipairs(req.messages) do
    if m.text ~= "" or #m.calls > 0 or #m.parts > 0 then table.insert(body.messages, message(m, o)) end
  end
  if #req.tools > 0 and not (req.tool_choice and req.tool_choice.mode == "none") then
    body.tools = json.array()
    for i, t in ipairs(req.tools) do
      body.tools[i] = { type = "function", ["function"] = { name = t.name, description = t.description, parameters = t.parameters } }
    end
  end
  local effort = think(req.thinking)
  if type(effort) == "string" and not source.model:lower():find(o.efforts) then effort = true end
  body.think = effort
  body.format = req.output_schema
  body.keep_alive = o.keep_alive
  -- Without num_ctx the server keeps 4096 tokens and cuts the rest in silence.
  body.options = { num_ctx = o.num_ctx or source.context_window, num_predict = req.max_tokens, temperature = req.temperature }
  if next(body.options) == nil then body.options = nil end
  return body
end

local function embed_request(req, source)
  return { model = source.model, input = req.texts, dimensions = req.dimensions }
end

local function embed_response(body)
  if get(body, "error") then return { error = fault(body.error, 200) } end
  local vectors = get(body, "embeddings")
  if vectors == nil and get(body, "embedding") then vectors = { body.embedding } end
  return { vectors = vectors, usage = { input = get(body, "prompt_eval_count") } }
end

return {
  contract = 1,
  name = "ollama",
  version = "1.0.0",
  base_url = "http://127.0.0.1:11434",
  endpoint = "/api/chat",
  framing = "ndjson",
  capabilities = { stream = true, tools = true, vision = true, audio = false, thinking = true, structured = true },
  options = {
    -- efforts fits models that know efforts; others are only told to think.
    efforts = "gpt%-oss",
  },
  headers = function() return { Authorization = "Bearer {{api_key}}" } end,
  transform_request = transform_request,
  transform_response = transform_response,
  transform_stream_chunk = transform_stream_chunk,
  classify_error = function(status, _, body)
    local e = type(body) == "table" and get(body, "error") or body
    return fault(type(e) == "table" and (errors.envelope(e) or e) or e, status)
  end,
  embed_endpoint = "/api/embed",
  embed_request = embed_request,
  embed_response = embed_response,
}
