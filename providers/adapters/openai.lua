-- OpenAI chat completions, and every server that speaks them: the vendor's own,
-- Azure, DeepSeek, Qwen, Kimi, GLM, Groq, Mistral's common part, xAI,
-- OpenRouter, Together, vLLM, SGLang, llama.cpp, LM Studio, Ollama's /v1.

local get, null = json.get, json.null

local function str(v)
  if type(v) == "string" and v ~= "" then return v end
end

-- Errors ---------------------------------------------------------------------

local by_code = {
  insufficient_quota = "quota_exhausted", quota_exceeded = "quota_exhausted", billing_hard_limit_reached = "quota_exhausted",
  exceeded_current_quota_error = "quota_exhausted", arrearage = "quota_exhausted", insufficient_balance = "quota_exhausted",
  ["1113"] = "quota_exhausted", ["1308"] = "quota_exhausted",
  rate_limit_exceeded = "rate_limit", rate_limit_reached_error = "rate_limit", rate_limit_error = "rate_limit",
  ["1302"] = "rate_limit", ["1303"] = "rate_limit", too_many_requests = "rate_limit",
  engine_overloaded_error = "overloaded", overloaded_error = "overloaded", ["1305"] = "overloaded", overloaded = "overloaded",
  invalid_api_key = "auth", invalidapikey = "auth", authentication_error = "auth", permission_error = "auth", invalid_iam_token = "auth",
  ["1000"] = "auth", ["1001"] = "auth", ["1002"] = "auth", ["1003"] = "auth", ["1004"] = "auth",
  context_length_exceeded = "context_overflow", exceed_context_size_error = "context_overflow", string_above_max_length = "context_overflow",
  request_too_large = "context_overflow", tokens_too_long = "context_overflow", characters_too_long = "context_overflow", ["1261"] = "context_overflow",
  model_not_found = "model_not_found", deploymentnotfound = "model_not_found", invalid_model = "model_not_found", modelnotfound = "model_not_found",
  content_filter = "content_blocked", content_policy_violation = "content_blocked", datainspectionfailed = "content_blocked",
  data_inspection_failed = "content_blocked", unsafe_request = "content_blocked", ["1301"] = "content_blocked", moderation = "content_blocked",
  tool_use_failed = "tool_use_failed",
  server_error = "server", internal_server_error = "server", network_error = "server", provider_error = "server",
  timeout = "timeout", request_timeout = "timeout",
  unsupported_value = "invalid_request", invalid_request_error = "invalid_request", invalid_prompt = "invalid_request",
}

-- Words in messages, for vendors whose codes say too little. Looked at in order.
local by_word = {
  { "insufficient_quota", "quota_exhausted" }, { "insufficient balance", "quota_exhausted" }, { "credit balance", "quota_exhausted" },
  { "billing", "quota_exhausted" }, { "usage limit", "quota_exhausted" }, { "arrear", "quota_exhausted" }, { "exceeded your current quota", "quota_exhausted" },
  { "out of credits", "quota_exhausted" }, { "insufficient credits", "quota_exhausted" },
  { "maximum context length", "context_overflow" }, { "context length", "context_overflow" }, { "context size", "context_overflow" },
  { "context window", "context_overflow" }, { "too many tokens", "context_overflow" }, { "prompt is too long", "context_overflow" },
  { "api key", "auth" }, { "api_key", "auth" },
  { "overloaded", "overloaded" }, { "invalid diff", "server" },
}

local function by_message(message)
  message = message:lower()
  for _, w in ipairs(by_word) do
    if message:find(w[1], 1, true) then return w[2] end
  end
end

-- What a status alone settles: a word in the message must not turn a 500 into
-- a broken key.
local function kind_of(status, code, etype, message)
  local kind = by_code[(code or ""):lower()]
  if status == 403 and (etype == "moderation" or message:lower():find("moderation", 1, true) or message:lower():find("guardrail", 1, true)) then
    return "content_blocked"
  end
  if kind and kind ~= "invalid_request" and kind ~= "rate_limit" then return kind end
  local words = (status < 500 or status == 0) and by_message(message) or nil
  if status == 429 then return words == "quota_exhausted" and words or kind or "rate_limit" end
  if words and not (words == "auth" and status ~= 400 and status ~= 401 and status ~= 403) then return words end
  kind = kind or by_code[(etype or ""):lower()]
  if status == 404 then return (message:lower():find("model", 1, true) or kind == "model_not_found") and "model_not_found" or "invalid_request" end
  if kind and not (kind == "invalid_request" and status >= 500) then return kind end
  return nil -- the status decides
end

-- fault reads an error object as any of these servers writes it.
local function fault(e, status)
  if type(e) == "string" then e = { message = e } end
  if type(e) ~= "table" then return { status = status, kind = kind_of(status, nil, nil, "") , message = "" } end
  local code, etype = get(e, "code"), str(get(e, "type"))
  local message = str(get(e, "message")) or str(get(e, "msg")) or ""
  local claimed = get(e, "status_code") or get(e, "status")
  if type(claimed) ~= "number" then claimed = nil end
  if type(code) == "number" then
    if not claimed and code >= 400 and code < 600 then claimed = code end
    code = tostring(code)
  end
  if status == 0 or status == 200 then status = claimed or 0 end
  code = str(code) or etype
  local kind = kind_of(status, code, etype, message .. " " .. (str(get(e, "metadata", "raw")) or ""))
  if not kind and status == 0 then kind = "server" end
  return { kind = kind, status = status, code = code, message = message }
end

-- envelope finds the error in a body, or nil: {error}, {code,message},
-- {detail}, {base_resp}.
local function envelope(body)
  local e = get(body, "error")
  if e ~= nil and e ~= false then return e end
  local base = get(body, "base_resp")
  if base and get(base, "status_code") and base.status_code ~= 0 then
    return { code = tostring(base.status_code), message = str(get(base, "status_msg")) }
  end
  if get(body, "choices") == nil then
    if str(get(body, "message")) then return { code = get(body, "code"), type = get(body, "type"), message = body.message } end
    if get(body, "detail") then
      return { message = type(body.detail) == "string" and body.detail or json.encode(body.detail) }
    end
    if str(get(body, "error_msg")) then return { code = get(body, "error_code"), message = body.error_msg } end
  end
end

-- Answers --------------------------------------------------------------------

local finishes = {
  stop = "stop", eos = "stop", end_turn = "stop", stop_sequence = "stop",
  length = "length", max_tokens = "length", model_length = "length", model_context_window_exceeded = "length",
  tool_calls = "tool_calls", function_call = "tool_calls", tool_use = "tool_calls",
  content_filter = "content_filter", sensitive = "content_filter", safety = "content_filter",
}

local function usage_of(u)
  if type(u) ~= "table" then return nil end
  local prompt, out, total = get(u, "prompt_tokens"), get(u, "completion_tokens"), get(u, "total_tokens")
  local thought = get(u, "completion_tokens_details", "reasoning_tokens")
  -- xAI leaves reasoning out of completion_tokens; the total tells.
  if type(thought) == "number" and type(total) == "number" and type(prompt) == "number" and type(out) == "number"
    and thought > 0 and prompt + out + thought == total then
    out = out + thought
  end
  return {
    input = prompt, output = out, total = total, reasoning = thought,
    cached = get(u, "prompt_tokens_details", "cached_tokens") or get(u, "prompt_cache_hit_tokens") or get(u, "cached_tokens"),
    cache_write = get(u, "prompt_tokens_details", "cache_write_tokens"),
    prompt_total = prompt,
  }
end

-- content is a string, or an array of parts (Mistral: thinking and text).
local function content(c, piece)
  if type(c) == "string" then
    piece.text = c
    return
  end
  if type(c) ~= "table" then return end
  for _, part in ipairs(c) do
    local kind = get(part, "type")
    if kind == "text" then
      piece.text = (piece.text or "") .. (str(get(part, "text")) or "")
    elseif kind == "thinking" then
      local t = get(part, "thinking")
      if type(t) == "string" then
        piece.reasoning = (piece.reasoning or "") .. t
      elseif type(t) == "table" then
        for _, p in ipairs(t) do piece.reasoning = (piece.reasoning or "") .. (str(get(p, "text")) or "") end
      end
    end
  end
end

local function tools(calls, piece)
  if type(calls) ~= "table" then return end
  if #calls == 0 and calls["function"] then calls = { calls } end
  for _, c in ipairs(calls) do
    local f = get(c, "function") or {}
    local args, index = get(f, "arguments"), get(c, "index")
    piece.tools = piece.tools or {}
    piece.tools[#piece.tools + 1] = {
      index = type(index) == "number" and index or nil,
      id = str(get(c, "id")), name = str(get(f, "name")),
      args = args,
    }
  end
end

local joined, single = { "text", "summary", "data" }, { "signature", "id", "format" }

-- keep collects what the next request must carry back. Pieces of one detail
-- are joined once, at the end.
local function keep(state, m)
  if type(get(m, "reasoning_content")) == "string" then state.content = true end
  local details = get(m, "reasoning_details")
  if type(details) ~= "table" then return end
  state.details = state.details or {}
  for _, d in ipairs(details) do
    local last = state.details[#state.details]
    if type(d) == "table" then
      if not last or get(last.head, "type") ~= get(d, "type") or get(last.head, "index") ~= get(d, "index") then
        last = { head = d, pieces = {} }
        state.details[#state.details + 1] = last
      end
      for _, f in ipairs(joined) do
        local more = str(get(d, f))
        if more then
          last.pieces[f] = last.pieces[f] or {}
          table.insert(last.pieces[f], more)
        end
      end
      for _, f in ipairs(single) do
        if str(get(d, f)) then last.head[f] = d[f] end
      end
    end
  end
end

local function material(state)
  if not state.details and not state.content then return nil end
  local out = {}
  if state.content then out.reasoning_content = true end
  if state.details then
    out.reasoning_details = json.array()
    for i, d in ipairs(state.details) do
      for f, list in pairs(d.pieces) do d.head[f] = table.concat(list) end
      out.reasoning_details[i] = d.head
    end
  end
  return json.encode(out)
end

-- one turns a choice's delta or message into a piece.
local function one(choice, m, piece, state)
  if type(m) == "table" then
    content(get(m, "content"), piece)
    piece.refusal = str(get(m, "refusal"))
    local thought = str(get(m, "reasoning_content")) or str(get(m, "reasoning"))
    if thought then piece.reasoning = (piece.reasoning or "") .. thought end
    tools(get(m, "tool_calls"), piece)
    local old = get(m, "function_call")
    if old then piece.tools = { { index = 0, name = str(get(old, "name")), args = get(old, "arguments") } } end
    keep(state, m)
  end
  local finish = get(choice, "finish_reason")
  if type(finish) == "string" and finish ~= "" then
    local native = get(choice, "native_finish_reason")
    local err = get(choice, "error")
    if finish == "error" or finish == "network_error" or native == "network_error" or err then
      piece.error = fault(err or { code = finish, message = "the model stopped with an error" }, 0)
    else
      piece.finish = finishes[finish] or "stop"
    end
  elseif get(choice, "error") then
    piece.error = fault(choice.error, 0)
  end
end

local function transform_stream_chunk(event, state)
  if event.event == "@end" then
    local m = material(state)
    return m and { replay = m } or nil
  end
  local e = event.json
  if not e then
    if event.data == "[DONE]" then return { done = true } end
    if event.event == "error" then return { error = fault(event.data, 0) } end
    return nil
  end
  local piece = { usage = usage_of(get(e, "usage") or get(e, "x_groq", "usage")), model = str(get(e, "model")) }
  local choice = get(e, "choices", 1)
  if choice then
    one(choice, get(choice, "delta") or get(choice, "message"), piece, state)
    piece.usage = piece.usage or usage_of(get(choice, "usage"))
  end
  local err = envelope(e)
  if err then
    piece.error = fault(err, 0)
    piece.finish = nil
  elseif event.event == "error" then
    piece.error = fault(e, 0)
  end
  return piece
end

local function transform_response(body, state)
  local err = envelope(body)
  local choice = get(body, "choices", 1)
  local piece = { usage = usage_of(get(body, "usage")), model = str(get(body, "model")) }
  if choice then one(choice, get(choice, "message") or get(choice, "delta"), piece, state) end
  if err then
    piece.error = fault(err, 200)
    piece.finish = nil
  elseif not choice then
    piece.error = { kind = "server", code = "no_choices", message = "the answer holds no choice" }
  end
  piece.replay = material(state)
  piece.done = true
  return piece
end

-- Requests -------------------------------------------------------------------

local function parts_of(m)
  local media = false
  for _, p in ipairs(m.parts) do media = media or p.type ~= "text" end
  if not media then return m.text end
  local out = json.array()
  for _, p in ipairs(m.parts) do
    if p.type == "text" then
      out[#out + 1] = { type = "text", text = p.text }
    elseif p.type == "image" then
      out[#out + 1] = { type = "image_url", image_url = { url = "data:" .. p.media_type .. ";base64," .. p.data } }
    elseif p.type == "audio" then
      out[#out + 1] = { type = "input_audio", input_audio = { data = p.data, format = p.media_type:match("/(.*)$") } }
    end
  end
  return out
end

local function assistant(m)
  local out = { role = "assistant", content = m.text }
  if #m.calls == 0 then return out end
  if m.text == "" then out.content = null end
  out.tool_calls = json.array()
  for i, c in ipairs(m.calls) do
    out.tool_calls[i] = { id = c.id, type = "function", ["function"] = { name = c.name, arguments = c.arguments } }
  end
  -- Servers that reason between tools want their reasoning back with the calls,
  -- and only with them.
  local replay = m.replay and json.decode(m.replay)
  if replay then
    if get(replay, "reasoning_content") then out.reasoning_content = m.reasoning end
    if get(replay, "reasoning_details") then out.reasoning_details = replay.reasoning_details end
  end
  return out
end

local function transform_request(req, source)
  local body = { model = source.model, messages = json.array() }
  for i, m in ipairs(req.messages) do
    if m.role == "assistant" then
      body.messages[i] = assistant(m)
    elseif m.role == "tool" then
      body.messages[i] = { role = "tool", tool_call_id = m.call_id, content = m.text }
    else
      body.messages[i] = { role = m.role, content = parts_of(m) }
    end
  end
  if #req.tools > 0 then
    body.tools = json.array()
    for i, t in ipairs(req.tools) do
      body.tools[i] = { type = "function", ["function"] = { name = t.name, description = t.description, parameters = t.parameters } }
    end
  end
  if req.max_tokens then
    -- Only the vendor's own API refuses the old name; only it knows the new one
    -- everywhere.
    local own = source.base_url:find("api.openai.com", 1, true) or source.base_url:find(".openai.azure.com", 1, true)
    body[own and "max_completion_tokens" or "max_tokens"] = req.max_tokens
  end
  body.temperature = req.temperature
  if req.stream then
    body.stream = true
    body.stream_options = { include_usage = true }
  end
  return body
end

local function headers(source)
  if source.base_url:find(".azure.com", 1, true) then return { ["api-key"] = "{{api_key}}" } end
  return { Authorization = "Bearer {{api_key}}" }
end

local function classify_error(e)
  local err = e.json and envelope(e.json)
  if not err and e.json and (str(get(e.json, "code")) or str(get(e.json, "message"))) then err = e.json end
  if not err then return { kind = kind_of(e.status, nil, nil, e.text), status = e.status, message = e.json and "" or e.text } end
  return fault(err, e.status)
end

return {
  contract = 1,
  name = "openai",
  version = "1.0.0",
  base_url = "https://api.openai.com/v1",
  endpoint = "/chat/completions",
  framing = "sse",
  capabilities = { stream = true, tools = true, vision = true, audio = true },
  headers = headers,
  transform_request = transform_request,
  transform_response = transform_response,
  transform_stream_chunk = transform_stream_chunk,
  classify_error = classify_error,
}
