-- Models at Amazon Bedrock, by its converse interface; with the option api =
-- "invoke" the models of Anthropic in their own language. The key is a key of
-- Bedrock, or ID:SECRET, which sign the request.

local errors, order, anthropic = use("_errors"), use("_order"), use("anthropic")
local read = use("_read")
local get = json.get
local str, list = read.str, read.list

-- Answers --------------------------------------------------------------------

local finishes = {
  end_turn = "stop", stop_sequence = "stop", max_tokens = "length", model_context_window_exceeded = "length", tool_use = "tool_calls",
  guardrail_intervened = "content_filter", content_filtered = "content_filter",
}

local kinds = {
  throttling = "rate_limit", throttled = "rate_limit", toomanyrequests = "rate_limit", modelnotready = "overloaded", serviceunavailable = "overloaded",
  internalserver = "server", internalfailure = "server", modelstreamerror = "server", modelerror = "server", modeltimeout = "timeout",
  accessdenied = "auth", unrecognizedclient = "auth", invalidsignature = "auth", expiredtoken = "auth", missingauthenticationtoken = "auth",
  incompletesignature = "auth", resourcenotfound = "model_not_found", servicequotaexceeded = "rate_limit", validation = "invalid_request",
}

-- fault reads an exception by its name, such as ThrottlingException:http://….
local function fault(name, body, status)
  local code = (str(name) or ""):match("^[^:]*"):gsub("^.*#", "")
  local short = code:lower():gsub("exception$", ""):gsub("error$", "")
  local text = type(body) == "table" and (str(get(body, "message")) or str(get(body, "Message")) or str(get(body, "originalMessage"))) or str(body) or ""
  local kind = kinds[short] or kinds[code:lower():gsub("exception$", "")]
  local words = text:lower()
  if kind == "invalid_request" or kind == nil then kind = status < 500 and errors.by_message(text) or kind end
  if kind == "invalid_request" and words:find("model identifier is invalid", 1, true) then kind = "model_not_found" end
  if kind == "invalid_request" and (words:find("input is too long", 1, true) or words:find("too long", 1, true)) then kind = "context_overflow" end
  if kind == "rate_limit" and words:find("per day", 1, true) then kind = "quota_exhausted" end
  if not kind and status == 0 then kind = "server" end
  local again
  if kind == "invalid_request" and (words:find("signature", 1, true) or words:find("thinking", 1, true)) then again = "without_replay" end
  return { kind = kind, status = status > 0 and status or nil, code = code ~= "" and code or nil, message = text, again = again }
end

local function usage_of(u)
  if type(u) ~= "table" then return nil end
  local num = read.num
  local input, cached, written = num(get(u, "inputTokens")), num(get(u, "cacheReadInputTokens")), num(get(u, "cacheWriteInputTokens"))
  return {
    input = input, output = get(u, "outputTokens"), total = get(u, "totalTokens"), cached = cached, cache_write = written,
    prompt_total = (input or 0) + (cached or 0) + (written or 0),
  }
end

local function stopped(reason)
  if not str(reason) then return {} end
  if reason == "malformed_model_output" or reason == "malformed_tool_use" then
    return { error = { kind = "malformed_tool_call", code = reason, message = "the model's tool call was malformed" } }
  end
  return { finish = finishes[reason] or "stop" }
end

local function say(state, text)
  text = str(text)
  if text then state.said = (state.said or 0) + #text end
  return text
end

-- thought collects a block of reasoning; its signature and what is redacted must
-- go back.
local function thought(state, key, r)
  state.blocks = state.blocks or {}
  local block = state.blocks[key]
  if not block then
    block = { pieces = {}, item = order.place(state, { type = "reasoning" }) }
    state.blocks[key] = block
  end
  local text = str(get(r, "text"))
  if text then table.insert(block.pieces, text) end
  block.signature = str(get(r, "signature")) or block.signature
  local hidden = str(get(r, "redactedContent"))
  if hidden then block.hidden = (block.hidden or "") .. hidden end
  return { reasoning = text }
end

local function material(state)
  for _, b in pairs(state.blocks or {}) do
    if b.hidden then
      b.item.type, b.item.item = "redacted_thinking", { type = "redacted_thinking", data = b.hidden }
    else
      b.item.type, b.item.item = "thinking", { type = "thinking", thinking = table.concat(b.pieces), signature = b.signature }
    end
  end
  return order.places(state)
end

local handlers = {
  contentBlockStart = function(state, e)
    local t = get(e, "start", "toolUse")
    if t then
      state.called = (state.called or 0) + 1
      return { tools = { { index = get(e, "contentBlockIndex"), id = str(get(t, "toolUseId")), name = str(get(t, "name")) } } }
    end
  end,
  contentBlockDelta = function(state, e)
    local d, key = get(e, "delta"), get(e, "contentBlockIndex")
    if get(d, "text") then return { text = say(state, d.text) } end
    if get(d, "toolUse") then return { tools = { { index = key, args = str(get(d, "toolUse", "input")) } } } end
    if get(d, "reasoningContent") then return thought(state, key or 0, d.reasoningContent) end
  end,
  messageStop = function(_, e) return stopped(get(e, "stopReason")) end,
  metadata = function(_, e) return { usage = usage_of(get(e, "usage")) } end,
}

local function transform_stream_chunk(event, state, source)
  if event.event == "@end" then
    if state.native then return anthropic.transform_stream_chunk(event, state, source) end
    local items = material(state)
    return items and { replay = items } or nil
  end
  local e = event.json
  if event.exception then
    if event.event == "" then return { error = fault(get(e, "code"), get(e, "message"), 0) } end
    return { error = fault(event.event, e or event.data, 0) }
  end
  if type(e) ~= "table" then return nil end
  local handler = handlers[event.event]
  if handler then return handler(state, e) end
  if str(get(e, "type")) then
    state.native = true
    return anthropic.transform_stream_chunk(event, state, source)
  end
  -- Some gateways put the event's name into the payload.
  for name, h in pairs(handlers) do
    if type(get(e, name)) == "table" then return h(state, e[name]) end
  end
end

local function transform_response(body, state, source, text)
  if get(body, "type") == "message" then return anthropic.transform_response(body, state, source, text) end
  local content = get(body, "output", "message", "content")
  if type(content) ~= "table" then
    local name = str(get(body, "__type")) or "no_output"
    return { error = fault(name, str(get(body, "message")) and body or "the answer holds no message", 0), done = true }
  end
  local out = { { usage = usage_of(get(body, "usage")) } }
  for i, c in ipairs(content) do
    if get(c, "toolUse") then
      state.called = (state.called or 0) + 1
      local args = json.pick(text, "output", "message", "content", i, "toolUse", "input")
      out[#out + 1] = { tools = { { index = i, id = str(get(c, "toolUse", "toolUseId")), name = str(get(c, "toolUse", "name")), args = args } } }
    elseif get(c, "reasoningContent") then
      local r = get(c, "reasoningContent", "reasoningText") or get(c, "reasoningContent")
      out[#out + 1] = thought(state, i, r)
    elseif get(c, "text") then
      out[#out + 1] = { text = say(state, c.text) }
    end
  end
  local last = stopped(get(body, "stopReason"))
  if not last.finish and not last.error then last.error = { kind = "server", code = "no_stop_reason", message = "the answer is not whole" } end
  last.replay, last.done = material(state), true
  out[#out + 1] = last
  return out
end

-- Requests -------------------------------------------------------------------

local function parts_of(m, out)
  for _, p in ipairs(m.parts) do
    if p.type == "image" then
      out[#out + 1] = { image = { format = p.media_type:match("/(.*)$"), source = { bytes = p.data } } }
    elseif p.type == "text" and p.text:find("%S") then
      out[#out + 1] = { text = p.text }
    end
  end
  return out
end

local function assistant(m, open)
  local out, put = json.array(), {}
  function put.text(text)
    if text:find("%S") then out[#out + 1] = { text = text } end
  end
  function put.call(c)
    out[#out + 1] = { toolUse = { toolUseId = c.id, name = c.name, input = json.raw(c.arguments) } }
  end
  function put.item(item)
    local it = item.item
    if not open or type(it) ~= "table" then return end
    if item.type == "redacted_thinking" then
      out[#out + 1] = { reasoningContent = { redactedContent = it.data } }
    elseif item.type == "thinking" then
      out[#out + 1] = { reasoningContent = { reasoningText = { text = it.thinking, signature = it.signature } } }
    end
  end
  order.weave(m, put)
  return out
end

local function messages(req)
  local out, last_question = json.array(), order.last_question(req.messages)
  for i, m in ipairs(req.messages) do
    local last = out[#out]
    if m.role == "assistant" then
      local content = assistant(m, i > last_question)
      if #content > 0 then out[#out + 1] = { role = "assistant", content = content } end
    elseif m.role ~= "system" then
      local content = json.array()
      if m.role == "tool" then
        local inside = parts_of(m, json.array())
        if #inside == 0 then inside[1] = { text = "(nothing)" } end
        content[1] = { toolResult = { toolUseId = m.call_id, content = inside, status = m.failed and "error" or "success" } }
      else
        parts_of(m, content)
      end
      if last and last.role == "user" then
        for _, c in ipairs(content) do table.insert(last.content, c) end
      elseif #content > 0 then
        out[#out + 1] = { role = "user", content = content }
      end
    end
  end
  if out[1] and out[1].role ~= "user" then
    table.insert(out, 1, { role = "user", content = { { text = "(The conversation goes on.)" } } })
  end
  return out
end

local budgets = { minimal = 1024, low = 2048, on = 4096, medium = 8192, high = 16384, max = 32768 }

local function converse(req, source)
  local body = { messages = messages(req) }
  local system = json.array()
  for _, m in ipairs(req.messages) do
    if m.role == "system" and m.text:find("%S") then system[#system + 1] = { text = m.text } end
  end
  if #system > 0 then body.system = system end
  local max = req.max_tokens
  local budget = source.model:find("anthropic", 1, true) and req.thinking and budgets[req.thinking]
  if budget then
    if max and max <= budget then max = max + budget end
    body.additionalModelRequestFields = { thinking = { type = "enabled", budget_tokens = budget } }
  end
  local config = { maxTokens = max, temperature = not budget and req.temperature or nil }
  if next(config) then body.inferenceConfig = config end
  local choice = req.tool_choice
  -- There is no choice of none; but calls in the history need their tools declared.
  local called = #req.tools == 0 and order.called(req.messages) or {}
  if #called > 0 then
    body.toolConfig = { tools = json.array() }
    for i, name in ipairs(called) do
      body.toolConfig.tools[i] = { toolSpec = { name = name, inputSchema = { json = { type = "object" } } } }
    end
  elseif #req.tools > 0 then
    body.toolConfig = { tools = json.array() }
    for i, t in ipairs(req.tools) do
      body.toolConfig.tools[i] = { toolSpec = { name = t.name, description = str(t.description), inputSchema = { json = t.parameters } } }
    end
    if choice and choice.mode == "tool" and not budget then
      body.toolConfig.toolChoice = { tool = { name = choice.name } }
    elseif choice and choice.mode == "required" and not budget then
      body.toolConfig.toolChoice = { any = json.empty_object }
    elseif choice and choice.mode == "auto" then
      body.toolConfig.toolChoice = { auto = json.empty_object }
    end
  end
  return body
end

-- native gives the options of the part for Anthropic's models.
local function native(source)
  local o = {}
  for k, v in pairs(anthropic.options) do o[k] = v end
  for k, v in pairs(source.options) do o[k] = v end
  return { name = source.name, model = source.model, base_url = source.base_url, options = o }
end

local function transform_request(req, source)
  if source.options.api ~= "invoke" then return converse(req, source) end
  local body = anthropic.transform_request(req, native(source))
  body.model, body.stream, body.anthropic_version = nil, nil, source.options.invoke_version
  return body
end

local function endpoint(req, source)
  local verb
  if source.options.api == "invoke" then
    verb = req.stream and "/invoke-with-response-stream" or "/invoke"
  else
    verb = req.stream and "/converse-stream" or "/converse"
  end
  return "/model/" .. escape(source.model) .. verb
end

return {
  contract = 1,
  name = "bedrock",
  version = "1.0.0",
  base_url = "https://bedrock-runtime.{region}.amazonaws.com",
  endpoint = endpoint,
  framing = "aws-eventstream",
  tool_ids = "plain",
  capabilities = { stream = true, tools = true, vision = true, audio = false, thinking = true, structured = false },
  auth = { kind = "aws", service = "bedrock" },
  options = {
    region = "us-east-1",
    -- api is "converse", or "invoke" for the models of Anthropic.
    api = "converse",
    invoke_version = "bedrock-2023-05-31",
  },
  headers = function() return { Authorization = "Bearer {{api_key}}" } end,
  transform_request = transform_request,
  transform_response = transform_response,
  transform_stream_chunk = transform_stream_chunk,
  classify_error = function(status, headers, body)
    local name = headers["x-amzn-errortype"] or type(body) == "table" and (str(get(body, "__type")) or str(get(body, "code"))) or nil
    -- What stands in front of the service has errors in its own form.
    if not name and type(get(body, "error")) == "table" then return errors.classified(status, body) end
    return fault(name, body, status)
  end,
}
