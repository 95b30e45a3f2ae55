-- Errors as model servers write them: which kind an error is, by its code, its
-- words and its status. Adapters take it with use("_errors") and may give codes
-- of their own, which win.

local read = use("_read")
local get = json.get
local str = read.str

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
  -- MiniMax numbers its errors like others number theirs; its envelope tells.
  base_resp_1002 = "rate_limit", base_resp_1004 = "auth", base_resp_1008 = "quota_exhausted", base_resp_1027 = "content_blocked",
  base_resp_1039 = "context_overflow", base_resp_2013 = "invalid_request", base_resp_2056 = "quota_exhausted", base_resp_2049 = "auth",
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
  { "overloaded", "overloaded" }, { "over capacity", "overloaded" }, { "invalid diff", "server" },
}

local function by_message(message)
  message = message:lower()
  for _, w in ipairs(by_word) do
    if message:find(w[1], 1, true) then return w[2] end
  end
end

-- What a status alone settles: a word in the message must not turn a 500 into
-- a broken key.
local function kind_of(status, code, etype, message, codes)
  code = (code or ""):lower()
  local kind = codes and codes[code] or by_code[code]
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
local function fault(e, status, codes)
  if type(e) == "string" then e = { message = e } end
  if type(e) ~= "table" then return { status = status, kind = kind_of(status, nil, nil, ""), message = "" } end
  local code, etype = get(e, "code"), str(get(e, "type"))
  local wire = code
  local message = str(get(e, "message")) or str(get(e, "msg")) or ""
  local claimed = get(e, "status_code") or get(e, "status")
  if type(claimed) ~= "number" then claimed = nil end
  if type(code) == "number" then
    if not claimed and not e.family and code >= 400 and code < 600 then claimed = code end
    code = tostring(code)
  end
  if status == 0 or status == 200 then status = claimed or 0 end
  code = str(code) or etype
  local kind = kind_of(status, (e.family or "") .. (code or ""), etype, message .. " " .. (str(get(e, "metadata", "raw")) or ""), codes)
  if not kind and status == 0 then kind = "server" end
  if type(wire) ~= "number" then wire = code end
  return { kind = kind, status = status, code = wire, message = message }
end

-- envelope finds the error in a body, or nil: {error}, {code,message},
-- {detail}, {base_resp}.
local function envelope(body)
  local e = get(body, "error")
  if e ~= nil and e ~= false then return e end
  local base = get(body, "base_resp")
  if base and get(base, "status_code") and base.status_code ~= 0 then
    return { code = base.status_code, message = str(get(base, "status_msg")), family = "base_resp_" }
  end
  if get(body, "choices") == nil then
    if str(get(body, "message")) then return { code = get(body, "code"), type = get(body, "type"), message = body.message } end
    if get(body, "detail") then
      return { message = type(body.detail) == "string" and body.detail or json.encode(body.detail) }
    end
    if str(get(body, "error_msg")) then return { code = get(body, "error_code"), message = body.error_msg } end
  end
end

-- classified is what classify_error gives for servers of the OpenAI family.
local function classified(status, body, codes)
  if type(body) ~= "table" then
    return { kind = kind_of(status, nil, nil, body, codes), status = status, message = body }
  end
  local err = envelope(body)
  if not err and (str(get(body, "code")) or str(get(body, "message"))) then err = body end
  if not err then return { kind = kind_of(status, nil, nil, "", codes), status = status } end
  return fault(err, status, codes)
end

return { kind_of = kind_of, by_message = by_message, fault = fault, envelope = envelope, classified = classified }
