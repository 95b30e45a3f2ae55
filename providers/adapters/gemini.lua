-- Google's Gemini, at its own address or, with the options project and location,
-- at Vertex.

local errors, order = use("_errors"), use("_order")
local read = use("_read")
local get = json.get
local str, list = read.str, read.list

-- Answers --------------------------------------------------------------------

local finishes = {
  STOP = "stop", MAX_TOKENS = "length", CONTINUATION = "pause",
  SAFETY = "content_filter", RECITATION = "content_filter", BLOCKLIST = "content_filter", PROHIBITED_CONTENT = "content_filter",
  SPII = "content_filter", LANGUAGE = "content_filter", MODEL_ARMOR = "content_filter", IMAGE_SAFETY = "content_filter",
  IMAGE_PROHIBITED_CONTENT = "content_filter", IMAGE_RECITATION = "content_filter",
}

local broken = {
  MALFORMED_FUNCTION_CALL = "malformed_tool_call", UNEXPECTED_TOOL_CALL = "malformed_tool_call",
  TOO_MANY_TOOL_CALLS = "malformed_tool_call", MISSING_THOUGHT_SIGNATURE = "invalid_request",
}

local function usage_of(u)
  if type(u) ~= "table" then return nil end
  local said, thought, total = get(u, "candidatesTokenCount"), get(u, "thoughtsTokenCount"), get(u, "totalTokenCount")
  local prompt, tools = get(u, "promptTokenCount"), get(u, "toolUsePromptTokenCount")
  local out = said
  if type(thought) == "number" then out = (type(said) == "number" and said or 0) + thought end
  return {
    input = prompt, output = out, reasoning = thought, total = total, cached = get(u, "cachedContentTokenCount"),
    prompt_total = type(prompt) == "number" and prompt + (type(tools) == "number" and tools or 0) or nil,
  }
end

-- step reads one step of a path like $.a[0]['b'] and gives its key and the rest.
local function step(path)
  local key, rest = path:match("^%.([^.%[]+)(.*)$")
  if key then return key, rest end
  key, rest = path:match("^%[(%d+)%](.*)$")
  if key then return tonumber(key) + 1, rest end
  return path:match("^%[['\"](.-)['\"]%](.*)$")
end

-- fits tells that a key can be set: a number in a list without leaving a hole, a
-- name in an object.
local function fits(at, key)
  if getmetatable(at) == "json.array" then return type(key) == "number" and key <= #at + 1 end
  return type(key) == "string"
end

-- put sets a value in the arguments that a stream builds; a text that goes on is
-- continued.
local function put(call, part)
  local path = get(part, "jsonPath")
  if type(path) ~= "string" then return end
  local value
  if get(part, "stringValue") ~= nil then
    value = part.stringValue
  elseif get(part, "numberValue") ~= nil then
    value = part.numberValue
  elseif get(part, "boolValue") ~= nil then
    value = part.boolValue
  elseif part.nullValue ~= nil then
    value = json.null
  end
  if value == nil then return end
  local texts = call.texts[path]
  if texts then
    if type(value) == "string" then table.insert(texts, value) end
    return
  end
  local at, key, rest = call.args, step(path:match("^%$?(.*)$"))
  while key and rest ~= "" do
    local key2, rest2 = step(rest)
    if not fits(at, key) then return end
    if type(at[key]) ~= "table" then at[key] = type(key2) == "number" and json.array() or json.object() end
    at, key, rest = at[key], key2, rest2
  end
  if not key or not fits(at, key) then return end
  if type(value) == "string" then
    call.texts[path], call.places[path], value = { value }, { at, key }, ""
    call.order[#call.order + 1] = path
  end
  at[key] = value
end

local function finished(call)
  for _, path in ipairs(call.order) do
    local place = call.places[path]
    if place then place[1][place[2]] = table.concat(call.texts[path]) end
  end
  return { tools = { { index = call.index, args = call.args } } }
end

-- open_call begins a call; in a stream of pieces its arguments follow.
local function open_call(state, f, piece, raw)
  state.called = (state.called or 0) + 1
  local call = { index = state.called, args = json.object(), texts = {}, order = {}, places = {} }
  local args = raw or get(f, "args")
  piece.tools = { { index = call.index, id = str(get(f, "id")), name = str(get(f, "name")), args = args } }
  if get(f, "willContinue") or get(f, "partialArgs") then
    state.call = call
    if type(get(f, "args")) == "table" then call.args = f.args end
  end
end

local function call_piece(state, f, out, raw)
  if type(f) ~= "table" then return end
  local name = str(get(f, "name"))
  if name and state.call then
    out[#out + 1] = finished(state.call)
    state.call = nil
  end
  local piece = {}
  if name then open_call(state, f, piece, raw) end
  local call = state.call
  local parts = get(f, "partialArgs")
  if call and type(parts) == "table" then
    for _, part in ipairs(parts) do put(call, part) end
  end
  if name then out[#out + 1] = piece end
  if call and not get(f, "willContinue") then
    out[#out + 1] = finished(call)
    state.call = nil
  end
end

-- sign keeps a signature with the part that it belongs to.
local function sign(state, p, before)
  local s = str(get(p, "thoughtSignature"))
  if not s then return end
  local item = order.place(state, { type = "thought_signature", signature = s })
  item.at, item.calls = before.said, before.called
  if get(p, "functionCall") then
    item.call = true
  elseif get(p, "thought") == true then
    item.thought = str(get(p, "text"))
  else
    item.till = state.said or 0
  end
end

local function part_piece(state, p, out, raw)
  local before = { said = state.said or 0, called = state.called or 0 }
  local text = str(get(p, "text"))
  if get(p, "functionCall") then
    call_piece(state, p.functionCall, out, raw)
  elseif text and get(p, "thought") == true then
    out[#out + 1] = { reasoning = text }
  elseif text then
    state.said = before.said + #text
    out[#out + 1] = { text = text }
  else
    for _, kind in ipairs({ "executableCode", "codeExecutionResult", "inlineData", "fileData", "toolCall", "toolResponse" }) do
      if get(p, kind) ~= nil then out[#out + 1] = { server_blocks = { kind } } end
    end
  end
  sign(state, p, before)
end

local function retry_after(e)
  local details = get(e, "details")
  if type(details) ~= "table" then return nil end
  for _, d in ipairs(details) do
    local s = str(get(d, "retryDelay"))
    if s then return tonumber(s:match("^([%d.]+)s$")) end
  end
end

local codes = {
  api_key_invalid = "auth", permission_denied = "auth", unauthenticated = "auth", not_found = "model_not_found",
  unavailable = "overloaded", internal = "server", deadline_exceeded = "timeout", invalid_argument = "invalid_request",
  failed_precondition = "invalid_request",
}

-- fault reads {code, message, status, details}. status there is a word.
local function fault(e, status)
  if type(e) ~= "table" then return errors.fault(e, status) end
  local word = str(get(e, "status"))
  local number = get(e, "code")
  if type(number) ~= "number" then number = nil end
  if (status == 0 or status == 200) and number then status = number end
  local f = errors.fault({ code = word or number, message = str(get(e, "message")) }, status, codes)
  if number and f.status == 0 then f.status = number end
  local all = json.encode(e)
  if status == 402 then
    f.kind = "quota_exhausted"
  elseif word == "RESOURCE_EXHAUSTED" or status == 429 then
    f.kind = (all:find("PerDay", 1, true) or errors.by_message(f.message) == "quota_exhausted" and not all:find("PerMinute", 1, true))
      and "quota_exhausted" or "rate_limit"
  elseif all:find("API_KEY_INVALID", 1, true) then
    f.kind = "auth"
  elseif f.kind == "invalid_request" and f.message:find("thought_?%s?signature") then
    f.again = "without_replay"
  elseif f.kind == "invalid_request" and f.message:find("token count") then
    f.kind = "context_overflow"
  end
  f.retry_after = retry_after(e)
  return f
end

-- answer reads one response: the whole one, or an event, which has the same form.
-- text is its JSON, of which calls keep the bytes.
local function answer(state, body, text)
  local out = {}
  if type(body) ~= "table" then return out end
  out[1] = { usage = usage_of(get(body, "usageMetadata")), model = str(get(body, "modelVersion")) }
  local err = errors.envelope(body)
  if err and get(body, "candidates") == nil and get(body, "promptFeedback") == nil then
    out[#out + 1] = { error = fault(err, 0) }
    return out
  end
  local c = get(body, "candidates", 1)
  local parts = get(c, "content", "parts")
  if type(parts) == "table" then
    for i, p in ipairs(parts) do
      part_piece(state, p, out, get(p, "functionCall", "args") and json.pick(text, "candidates", 1, "content", "parts", i, "functionCall", "args"))
    end
  end
  local reason, block = str(get(c, "finishReason")), str(get(body, "promptFeedback", "blockReason"))
  if reason and reason ~= "FINISH_REASON_UNSPECIFIED" then
    if state.call then
      out[#out + 1] = finished(state.call)
      state.call = nil
    end
    state.finished = true
    if broken[reason] then
      out[#out + 1] = { replay = order.places(state) }
      out[#out + 1] = { error = { kind = broken[reason], code = reason, message = str(get(c, "finishMessage")) or "the model's tool call was malformed" } }
    else
      out[#out + 1] = { finish = finishes[reason] or "stop" }
    end
  elseif block and not c then
    local why = str(get(body, "promptFeedback", "blockReasonMessage")) or "the vendor's filter refused the prompt"
    out[#out + 1] = { error = { kind = "content_blocked", code = block, message = why } }
  elseif err then
    out[#out + 1] = { error = fault(err, 0) }
  end
  return out
end

local function transform_stream_chunk(event, state)
  if event.event == "@end" then
    local items = order.places(state)
    return items and { replay = items } or nil
  end
  local e = event.json
  if type(e) ~= "table" then
    if event.data == "[DONE]" then return { done = true } end
    if event.event == "error" then return { error = fault(event.data, 0) } end
    return nil
  end
  return answer(state, e, event.data)
end

-- The whole answer of a stream that was not asked for as events is a list.
local function transform_response(body, state, _, text)
  local out = {}
  local function add(one, raw)
    for _, piece in ipairs(answer(state, one, raw)) do out[#out + 1] = piece end
  end
  if #list(body) == 0 then add(body, text) end
  for _, one in ipairs(list(body)) do add(one, json.encode(one)) end
  if not state.finished then
    out[#out + 1] = { error = { kind = "server", code = "no_candidate", message = "the answer holds no finished candidate" } }
  end
  out[#out + 1] = { replay = order.places(state), done = true }
  return out
end

-- Requests -------------------------------------------------------------------

local function media(p)
  if p.data then return { inlineData = { mimeType = p.media_type, data = p.data } } end
  if p.text ~= "" then return { text = p.text } end
end

local function modern(source) return source.model:find("gemini%-[3-9]") ~= nil end

-- assistant gives the parts of an answer, each signature on the part it came on.
local function assistant(m, source, open)
  local out, put = json.array(), {}
  local signature
  function put.text(text)
    out[#out + 1] = { text = text }
  end
  function put.call(c)
    local call = { name = c.name, args = json.raw(c.arguments) }
    if not c.made then call = { id = c.id, name = c.name, args = json.raw(c.arguments) } end
    out[#out + 1] = { functionCall = call, thoughtSignature = signature }
    signature = nil
  end
  function put.item(item, _, text)
    if item.type ~= "thought_signature" then return end
    if item.call then
      signature = item.signature
    elseif item.thought then
      out[#out + 1] = { text = item.thought, thought = true, thoughtSignature = item.signature }
    else
      out[#out + 1] = { text = text, thoughtSignature = item.signature }
    end
  end
  order.weave(m, put)
  if open and #m.calls > 0 and source.options.bypass and modern(source) then
    -- The newest models refuse a turn whose first call has no signature, also
    -- where another model made it.
    local first
    for _, p in ipairs(out) do
      if p.functionCall and not first then first = p end
      if p.functionCall and p.thoughtSignature then first = nil break end
    end
    if first then first.thoughtSignature = source.options.bypass end
  end
  return out
end

local function result(m)
  local response = m.failed and { error = m.text } or { result = m.text }
  local answer_ = { name = m.name, response = response }
  if not m.made then answer_ = { id = m.call_id, name = m.name, response = response } end
  return { functionResponse = answer_ }
end

local function contents(req, source)
  local out, last_question = json.array(), order.last_question(req.messages)
  for i, m in ipairs(req.messages) do
    local parts = json.array()
    if m.role == "assistant" then
      parts = assistant(m, source, i > last_question)
    elseif m.role == "tool" then
      parts[1] = result(m)
      for _, p in ipairs(m.parts) do
        if p.data then parts[#parts + 1] = media(p) end
      end
    elseif m.role == "user" then
      for _, p in ipairs(m.parts) do parts[#parts + 1] = media(p) end
    end
    local role = m.role == "assistant" and "model" or "user"
    if #parts > 0 then
      local last = out[#out]
      if last and last.role == role and role == "user" then
        for _, p in ipairs(parts) do table.insert(last.parts, p) end
      else
        out[#out + 1] = { role = role, parts = parts }
      end
    end
  end
  return out
end

local levels = { minimal = "MINIMAL", low = "LOW", medium = "MEDIUM", high = "HIGH", max = "HIGH" }
local budgets = { off = 0, on = -1, minimal = 512, low = 2048, medium = 8192, high = 16384, max = 24576 }

local function think(req, source)
  local effort = req.thinking
  if not effort or not (modern(source) or source.model:find("gemini%-2%.5")) then return nil end
  if modern(source) then
    -- These always think; the least there is stands for off.
    return { thinkingLevel = levels[effort == "off" and "minimal" or effort], includeThoughts = effort ~= "off" }
  end
  local budget = budgets[effort]
  if budget == 0 and source.model:find("pro", 1, true) then budget = 128 end
  return { thinkingBudget = budget, includeThoughts = effort ~= "off" }
end

local function config(req, source)
  local c = json.object()
  c.maxOutputTokens, c.temperature = req.max_tokens, req.temperature
  if req.output_schema then
    c.responseMimeType, c.responseJsonSchema = "application/json", req.output_schema
  end
  c.thinkingConfig = think(req, source)
  return c
end

local modes = { auto = "AUTO", none = "NONE", required = "ANY" }

local function transform_request(req, source)
  local body = { contents = contents(req, source) }
  local system = json.array()
  for _, m in ipairs(req.messages) do
    if m.role == "system" and m.text ~= "" then system[#system + 1] = { text = m.text } end
  end
  if #system > 0 then body.systemInstruction = { parts = system } end
  if #req.tools > 0 then
    local list = json.array()
    for i, t in ipairs(req.tools) do
      list[i] = { name = t.name, description = t.description, parametersJsonSchema = t.parameters }
    end
    body.tools = { { functionDeclarations = list } }
    local c = req.tool_choice
    if c and c.mode == "tool" then
      body.toolConfig = { functionCallingConfig = { mode = "ANY", allowedFunctionNames = { c.name } } }
    elseif c then
      body.toolConfig = { functionCallingConfig = { mode = modes[c.mode] } }
    end
  end
  body.generationConfig = config(req, source)
  return body
end

local function endpoint(req, source)
  local o = source.options
  local verb = req.stream and ":streamGenerateContent?alt=sse" or ":generateContent"
  if o.project then
    return "/v1/projects/" .. escape(o.project) .. "/locations/" .. escape(o.location) .. "/publishers/google/models/" .. escape(source.model) .. verb
  end
  local base = source.base_url:find("/v1[%w]*/?$") and "" or "/v1beta"
  return base .. "/models/" .. escape(source.model) .. verb
end

local function headers(source)
  if source.options.project then return { Authorization = "Bearer {{api_key}}" } end
  return { ["x-goog-api-key"] = "{{api_key}}" }
end

local function classify_error(status, _, body)
  if type(body) == "table" and #body > 0 then body = list(body[1]) end
  local err = type(body) == "table" and errors.envelope(body)
  if not err then return errors.classified(status, body, codes) end
  return fault(err, status)
end

local function embed_request(req, source)
  local list = json.array()
  for i, text in ipairs(req.texts) do
    list[i] = {
      model = "models/" .. source.model, content = { parts = { { text = text } } },
      taskType = req.purpose == "query" and "RETRIEVAL_QUERY" or "RETRIEVAL_DOCUMENT", outputDimensionality = req.dimensions,
    }
  end
  return { requests = list }
end

local function embed_response(body)
  local err = errors.envelope(body)
  if err and get(body, "embeddings") == nil then return { error = fault(err, 0) } end
  local vectors = json.array()
  for i, e in ipairs(list(get(body, "embeddings"))) do vectors[i] = get(e, "values") end
  return { vectors = vectors }
end

return {
  contract = 1,
  name = "gemini",
  version = "1.0.0",
  base_url = "https://generativelanguage.googleapis.com",
  endpoint = endpoint,
  framing = "sse",
  capabilities = { stream = true, tools = true, vision = true, audio = true, thinking = true, structured = true },
  options = {
    -- bypass stands for the signature of calls that another model made.
    bypass = "skip_thought_signature_validator",
    -- project and location lead to Vertex; the key is a token then.
    location = "global",
  },
  headers = headers,
  transform_request = transform_request,
  transform_response = transform_response,
  transform_stream_chunk = transform_stream_chunk,
  classify_error = classify_error,
  embed_endpoint = function(_, source)
    local base = source.base_url:find("/v1[%w]*/?$") and "" or "/v1beta"
    return base .. "/models/" .. escape(source.model) .. ":batchEmbedContents"
  end,
  embed_request = embed_request,
  embed_response = embed_response,
}
