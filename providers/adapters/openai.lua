-- OpenAI chat completions, and every server that speaks them. What differs from
-- server to server is data: the options below, which profiles (files with
-- extends = "openai") and the source's own options change.

local errors, tags, media = use("_errors"), use("_tags"), use("_media")
local read = use("_read")
local get, null = json.get, json.null
local str, list = read.str, read.list
local fault, envelope = errors.fault, errors.envelope

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
local function content(c, piece, state, o)
  if type(c) == "string" then
    if o.think_tags and c ~= "" then tags.untag(state, c, piece, o.think_tags) else piece.text = c end
    return
  end
  if type(c) ~= "table" then return end
  for _, part in ipairs(c) do
    local kind = get(part, "type")
    if kind == "text" then
      piece.text = (piece.text or "") .. (str(get(part, "text")) or "")
    elseif kind == "refusal" then
      piece.refusal = (piece.refusal or "") .. (str(get(part, "refusal")) or "")
    elseif kind == "thinking" then
      state.thinking = state.thinking or { signature = nil }
      state.thinking.signature = str(get(part, "signature")) or state.thinking.signature
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

-- material gives the items of what was kept, or nil. The text of
-- reasoning_content is the reasoning itself, so that only its name is kept.
local function material(state)
  local out = {}
  if state.content then out[1] = { type = "reasoning_content" } end
  if state.details then
    local details = json.array()
    for i, d in ipairs(state.details) do
      for f, list in pairs(d.pieces) do d.head[f] = table.concat(list) end
      details[i] = d.head
    end
    out[#out + 1] = { type = "reasoning_details", details = details }
  end
  if state.thinking then out[#out + 1] = { type = "content", thinking = true, signature = state.thinking.signature } end
  local t = state.tags
  if t and t.seen and t.close ~= "" then out[#out + 1] = { type = "think_tags", open = t.open, close = t.close } end
  if #out > 0 then return out end
end

-- details_text is the reasoning of a server that gives it nowhere else.
local function details_text(m)
  local details, out = get(m, "reasoning_details"), nil
  for _, d in ipairs(type(details) == "table" and details or {}) do
    local text = str(get(d, "text")) or str(get(d, "summary"))
    if text then out = (out or "") .. text end
  end
  return out
end

-- options_for gives the options with those of the rules that fit the model.
local function options_for(source)
  local o = source.options
  if not o.rules then return o end
  local out = {}
  for k, v in pairs(o) do out[k] = v end
  for _, rule in ipairs(o.rules) do
    if source.model:lower():find(rule.model) then
      for k, v in pairs(rule) do out[k] = v end
    end
  end
  return out
end

-- options_of is options_for, once for each answer.
local function options_of(state, source)
  state.o = state.o or options_for(source)
  return state.o
end

-- failed names an error; where a server lost its own thread of a stream it can
-- still answer in one piece.
local function failed(e, status, codes)
  local f = fault(e, status, codes)
  if f.message:lower():find("invalid diff", 1, true) then f.again = "whole" end
  return f
end

-- one turns a choice's delta or message into a piece.
local function one(choice, m, piece, state, o)
  local codes = o.codes
  if type(m) == "table" then
    content(get(m, "content"), piece, state, o)
    piece.refusal = str(get(m, "refusal")) or piece.refusal
    local thought = str(get(m, "reasoning_content")) or str(get(m, "reasoning")) or details_text(m)
    if thought then piece.reasoning = (piece.reasoning or "") .. thought end
    tools(get(m, "tool_calls"), piece)
    local old = get(m, "function_call")
    if old then piece.tools = { { index = 0, name = str(get(old, "name")), args = get(old, "arguments") } } end
    keep(state, m)
  end
  if m == nil then piece.text = str(get(choice, "text")) end
  local finish = get(choice, "finish_reason")
  if type(finish) == "string" and finish ~= "" then
    tags.untagged(state, piece)
    local native = get(choice, "native_finish_reason")
    local err = get(choice, "error")
    if finish == "error" or finish == "network_error" or native == "network_error" or err then
      piece.error = fault(err or { code = finish, message = "the model stopped with an error" }, 0, codes)
    else
      piece.finish = finishes[finish] or "stop"
    end
  elseif get(choice, "error") then
    piece.error = fault(choice.error, 0, codes)
  end
end

local function transform_stream_chunk(event, state, source)
  local o = options_of(state, source)
  if event.event == "@end" then
    local piece = {}
    tags.untagged(state, piece)
    piece.replay = material(state)
    return piece
  end
  local e, codes = event.json, o.codes
  if not e then
    if event.data == "[DONE]" then return { done = true } end
    if event.event == "error" then return { error = fault(event.data, 0, codes) } end
    return nil
  end
  local piece = { usage = usage_of(get(e, "usage") or get(e, "x_groq", "usage")), model = str(get(e, "model")) }
  local choice = get(e, "choices", 1)
  if choice then
    one(choice, get(choice, "delta") or get(choice, "message"), piece, state, o)
    piece.usage = piece.usage or usage_of(get(choice, "usage"))
  end
  local err = envelope(e) or get(e, "x_groq", "error")
  if err then
    piece.error = failed(err, 0, codes)
    piece.finish = nil
  elseif event.event == "error" then
    piece.error = failed(e, 0, codes)
  end
  return piece
end

local function transform_response(body, state, source)
  local err, o = envelope(body), options_of(state, source)
  local choice = get(body, "choices", 1)
  local piece = { usage = usage_of(get(body, "usage")), model = str(get(body, "model")) }
  if choice then one(choice, get(choice, "message") or get(choice, "delta"), piece, state, o) end
  if err then
    piece.error = fault(err, 200, o.codes)
    piece.finish = nil
  elseif not choice then
    piece.error = { kind = "server", code = "no_choices", message = "the answer holds no choice" }
  end
  tags.untagged(state, piece)
  piece.replay = material(state)
  piece.done = true
  return piece
end

-- Requests -------------------------------------------------------------------

local function image(p)
  return { type = "image_url", image_url = { url = "data:" .. p.media_type .. ";base64," .. p.data } }
end

local function parts_of(m)
  local plain = true
  for _, p in ipairs(m.parts) do plain = plain and p.type == "text" end
  if plain then return m.text end
  local out = json.array()
  for _, p in ipairs(m.parts) do
    if p.type == "text" then
      out[#out + 1] = { type = "text", text = p.text }
    elseif p.type == "image" then
      out[#out + 1] = image(p)
    elseif p.type == "audio" then
      out[#out + 1] = { type = "input_audio", input_audio = { data = p.data, format = media.sound(p.media_type) } }
    end
  end
  return out
end

-- recall puts back what the server wants to see again of its own reasoning.
local function recall(m, out, want)
  if want == "never" then return end
  for i, item in ipairs(read.items(m)) do
    if item.type == "reasoning_content" then
      out.reasoning_content = m.reasoning or ""
    elseif item.type == "reasoning_details" then
      out.reasoning_details = json.pick(m.replay, i, "details")
    elseif item.type == "think_tags" then
      out.content = (str(item.open) or "") .. (m.reasoning or "") .. (str(item.close) or "") .. m.text
    elseif item.type == "content" and item.thinking then
      out.content = json.array()
      out.content[1] = { type = "thinking", thinking = { { type = "text", text = m.reasoning or "" } }, signature = item.signature, closed = true }
      if m.text ~= "" then out.content[2] = { type = "text", text = m.text } end
    end
  end
  -- Some refuse a call without its reasoning, also where another model made it.
  if want == "fill" and out.reasoning_content == nil then out.reasoning_content = m.reasoning or "" end
end

local function assistant(m, o)
  local out = { role = "assistant", content = m.text }
  if #m.calls == 0 then
    if o.replay == "always" then recall(m, out, o.replay) end
    return out
  end
  if m.text == "" then out.content = null end
  out.tool_calls = json.array()
  for i, c in ipairs(m.calls) do
    out.tool_calls[i] = { id = c.id, type = "function", ["function"] = { name = c.name, arguments = c.arguments } }
  end
  -- Servers that reason between tools want their reasoning back with the calls,
  -- and mostly only with them.
  recall(m, out, o.replay)
  return out
end

local function set(body, fields)
  for k, v in pairs(fields or {}) do
    if type(v) == "table" and type(body[k]) == "table" and #v == 0 then set(body[k], v) else body[k] = v end
  end
end

-- think asks for as much thought as is wished: the profile says in which words.
local function think(body, effort, words)
  if not effort or not words then return false end
  set(body, words[effort] or effort ~= "off" and words.on or nil)
  return effort ~= "off"
end

local function tool_choice(choice, body, o)
  if o.tool_choice == false then return end
  if choice.mode == "tool" then
    body.tool_choice = { type = "function", ["function"] = { name = choice.name } }
  else
    body.tool_choice = choice.mode == "required" and o.required or choice.mode
  end
end

local function schema(req, body, o)
  if o.structured == "object" then
    body.response_format = { type = "json_object" }
  elseif o.structured then
    body.response_format = { type = "json_schema", json_schema = { name = "answer", schema = req.output_schema, strict = media.strict(req.output_schema) } }
  end
end

-- pictures of tools' results, which a tool message cannot carry, follow the last
-- of the results as a message of the user.
local function pictures(m, list)
  local plain = true
  for _, p in ipairs(m.parts) do plain = plain and p.data == nil end
  if plain then return end
  table.insert(list, { type = "text", text = "Result of " .. (m.name or "the tool") .. ":" })
  for _, p in ipairs(m.parts) do
    if p.type == "image" then table.insert(list, image(p)) end
  end
end

local function messages(req, o)
  local out, list = json.array(), json.array()
  for i, m in ipairs(req.messages) do
    if m.role == "assistant" then
      if m.text ~= "" or #m.calls > 0 then out[#out + 1] = assistant(m, o) end
    elseif m.role == "tool" then
      pictures(m, list)
      local text = m.text
      if text == "" and #m.parts > 0 then text = "(See the picture that follows.)" end
      out[#out + 1] = { role = "tool", tool_call_id = m.call_id, content = text, name = o.tool_names and m.name or nil }
      local following = req.messages[i + 1]
      if #list > 0 and not (following and following.role == "tool") then
        out[#out + 1] = { role = "user", content = list }
        list = json.array()
      end
    elseif m.role == "system" then
      out[#out + 1] = { role = o.system_role, content = m.text }
    else
      local before = out[#out]
      if o.between and before and before.role == "tool" then out[#out + 1] = { role = "assistant", content = o.between } end
      out[#out + 1] = { role = m.role, content = parts_of(m) }
    end
  end
  return out
end

local function own(source)
  return source.base_url:find("api.openai.com", 1, true) or source.base_url:find(".azure.com", 1, true)
end

local function transform_request(req, source)
  local o = options_for(source)
  local body = { model = source.model, messages = messages(req, o) }
  if #req.tools > 0 then
    body.tools = json.array()
    for i, t in ipairs(req.tools) do
      body.tools[i] = { type = "function", ["function"] = { name = t.name, description = t.description, parameters = t.parameters } }
    end
    if req.tool_choice then tool_choice(req.tool_choice, body, o) end
    if req.stream then set(body, o.tool_stream) end
  end
  if req.max_tokens and o.max_tokens then
    local field = o.max_tokens
    -- Only the vendor's own API refuses the old name; only it knows the new one
    -- everywhere.
    if field == "auto" then field = own(source) and "max_completion_tokens" or "max_tokens" end
    body[field] = req.max_tokens
  end
  body.temperature = req.temperature
  if req.output_schema then schema(req, body, o) end
  if req.stream then
    body.stream = true
    if o.stream_usage then body.stream_options = { include_usage = true } end
  end
  local thinks = think(body, req.thinking, o.thinking)
  if not req.stream then
    set(body, o.whole)
    for _, field in ipairs(o.drop_whole or {}) do body[field] = nil end
  end
  set(body, o.body)
  for _, field in ipairs(o.drop or {}) do body[field] = nil end
  if thinks then
    for _, field in ipairs(o.drop_thinking or {}) do body[field] = nil end
  end
  return body
end

local function headers(source)
  if source.base_url:find(".azure.com", 1, true) then return { ["api-key"] = "{{api_key}}" } end
  if source.options.key_header then return { [source.options.key_header] = "{{api_key}}" } end
  return { Authorization = "Bearer {{api_key}}" }
end

local function classify_error(status, _, body, source)
  return errors.classified(status, body, source.options.codes)
end

local function embed_request(req, source)
  return { model = source.model, input = req.texts, dimensions = req.dimensions, encoding_format = source.options.embed_format or nil }
end

local function embed_response(body, source)
  local err = envelope(body)
  if err and get(body, "data") == nil then return { error = fault(err, 200, source.options.codes) } end
  return { vectors = read.vectors(body), usage = { input = get(body, "usage", "prompt_tokens") } }
end

return {
  contract = 1,
  name = "openai",
  version = "1.2.0",
  base_url = "https://api.openai.com/v1",
  endpoint = "/chat/completions",
  framing = "sse",
  capabilities = { stream = true, tools = true, vision = true, audio = true, thinking = true, structured = true },
  options = {
    -- max_tokens names the field for the longest answer; auto tells by the
    -- address, false sends none.
    max_tokens = "auto",
    system_role = "system",
    -- stream_usage asks for token counts in a stream.
    stream_usage = true,
    -- structured: "schema", "object" where only JSON without a schema can be
    -- asked for, or false.
    structured = "schema",
    -- required is the server's word for tool_choice "required"; tool_choice =
    -- false sends none.
    required = "required",
    -- replay of reasoning: "seen" sends back with tool calls what the server sent,
    -- "always" with every answer, "fill" also "" where there was none, "never".
    replay = "seen",
    -- think_tags takes thoughts out of the text: true where they stand between
    -- <think> and </think> at its beginning, "implied" where the first tag is
    -- left out.
    think_tags = false,
    -- between is what an assistant says between results and a new question, for
    -- servers that want somebody to speak there.
    between = false,
    -- embed_format asks for embeddings as "base64" or "float"; false for neither.
    embed_format = "base64",
    -- thinking maps an effort to fields of the body; on stands for those missing.
    thinking = {
      off = { reasoning_effort = "none" }, on = {}, minimal = { reasoning_effort = "minimal" }, low = { reasoning_effort = "low" },
      medium = { reasoning_effort = "medium" }, high = { reasoning_effort = "high" }, max = { reasoning_effort = "xhigh" },
    },
    -- rules are options for models whose name fits a pattern; drop lists fields
    -- that are not sent, drop_thinking those not sent while it thinks; body has
    -- fields that are always sent, whole those sent where no stream is asked for and
    -- drop_whole those not sent then, tool_stream those sent with tools in a stream;
    -- codes maps error codes (lower case) to kinds; key_header is where the key
    -- goes instead of Authorization.
    rules = { { model = "^o%d", drop = { "temperature" } }, { model = "^gpt%-5", drop = { "temperature" } } },
  },
  headers = headers,
  transform_request = transform_request,
  transform_response = transform_response,
  transform_stream_chunk = transform_stream_chunk,
  classify_error = classify_error,
  embed_endpoint = "/embeddings",
  embed_request = embed_request,
  embed_response = embed_response,
}
