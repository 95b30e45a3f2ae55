-- offline answers where no model is configured: it says so, answers with what
-- memory brought up, and runs the tools that a person names. It answers in the
-- person's language, Chinese or English.

local words = {
  en = {
    notice = "No model is configured, so I cannot think about this myself; I can answer from memory and run tools that you name.",
    found = "This is what I remember about it:",
    nothing = "I remember nothing about it.",
    kept = "I keep what you said; you can ask me about it at any time.",
    add = "To talk with a model, add one: waiter providers add. To run a tool: /tool NAME {\"key\": \"value\"}; /tools lists them.",
    said = { user = "you", agent = "I" },
    item = function(date, who, text) return "- " .. (date and date .. ", " or "") .. who .. ": " .. text end,
    result = function(name) return "Result of " .. name .. ":" end,
    failure = function(name) return "The tool " .. name .. " failed:" end,
    unknown = function(name) return "There is no tool named " .. name .. "." end,
    tools = "These tools can be run with /tool NAME {…}:",
    no_tools = "No tools are available.",
    bad_json = function(name, why) return "The arguments for " .. name .. " must be a JSON object, such as {\"key\": \"value\"} (" .. why .. ")." end,
    attached = "I cannot look into attachments without a model.",
  },
  zh = {
    notice = "目前没有配置模型，所以我无法自己思考这个问题；我可以根据记忆回答，也可以运行你点名的工具。",
    found = "关于这件事，我记得：",
    nothing = "关于这件事，我没有任何记忆。",
    kept = "你说的话我记下了，随时可以问我。",
    add = "想和模型对话，请先添加一个：waiter providers add。运行工具：/tool 名称 {\"键\": \"值\"}；/tools 列出全部工具。",
    said = { user = "你", agent = "我" },
    item = function(date, who, text) return "- " .. (date and date .. "，" or "") .. who .. "：" .. text end,
    result = function(name) return "工具 " .. name .. " 的结果：" end,
    failure = function(name) return "工具 " .. name .. " 失败了：" end,
    unknown = function(name) return "没有名为 " .. name .. " 的工具。" end,
    tools = "可以用 /tool 名称 {…} 运行这些工具：",
    no_tools = "目前没有可用的工具。",
    bad_json = function(name, why) return name .. " 的参数必须是 JSON 对象，例如 {\"键\": \"值\"}（" .. why .. "）。" end,
    attached = "没有模型，我无法查看附件。",
  },
}

-- Han letters are E4..E9 and E3 90..BF in UTF-8; kana and Hangul count too, as
-- their readers are served better by Chinese than by English.
local function language(text)
  if text:find("[\228-\233][\128-\191][\128-\191]") or text:find("\227[\144-\191][\128-\191]") then return words.zh end
  return words.en
end

local function last_user(req)
  for i = #req.messages, 1, -1 do
    if req.messages[i].role == "user" then return req.messages[i] end
  end
end

local function trim(s) return (s:gsub("^%s+", ""):gsub("%s+$", "")) end

-- date gives YYYY-MM-DD in UTC for seconds since 1970.
local function date(at)
  if not at or at <= 0 then return nil end
  local z = math.floor(at / 86400) + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local d, m = doy - math.floor((153 * mp + 2) / 5) + 1, mp < 10 and mp + 3 or mp - 9
  return string.format("%04d-%02d-%02d", yoe + era * 400 + (m <= 2 and 1 or 0), m, d)
end

-- named finds a tool that the text asks for: its name and the arguments' text.
local function named(text)
  local name, rest = text:match("^/tool%s+([%w_%-]+)%s*(.*)$")
  if name then return name, rest end
  local lower = text:lower()
  for _, form in ipairs({ "^please%s+use%s+tool%s+()", "^use%s+the%s+tool%s+()", "^use%s+tool%s+()", "^run%s+the%s+tool%s+()", "^run%s+tool%s+()" }) do
    local at = lower:match(form)
    if at then
      name, rest = text:sub(at):match("^[`\"']?([%w_%-]+)[`\"']?%s*(.*)$")
      if name then return name, (rest:gsub("^[Ww]ith%s*", ""):gsub("^:%s*", "")) end
    end
  end
  for _, form in ipairs({ "请使用工具", "使用工具", "运行工具", "调用工具", "用工具" }) do
    if text:sub(1, #form) == form then
      name, rest = text:sub(#form + 1):match("^%s*([%w_%-]+)%s*(.*)$")
      if name then return name, (rest:gsub("^参数", ""):gsub("^[：:]", "")) end
    end
  end
end

-- bare are the words that ask for the list of tools.
local bare = { ["/tools"] = true, ["/tool"] = true }

local function finish(pieces)
  pieces[#pieces + 1] = { finish = "stop", done = true }
  return pieces
end

local function lines(list)
  local out = {}
  for i, l in ipairs(list) do out[i] = { text = i == 1 and l or "\n" .. l } end
  return finish(out)
end

local function tool_list(req, w)
  if #req.tools == 0 then return lines({ w.no_tools }) end
  local out = { w.tools }
  for _, t in ipairs(req.tools) do
    out[#out + 1] = "- " .. t.name .. (t.description ~= "" and ": " .. t.description or "")
  end
  return lines(out)
end

local function has_tool(req, name)
  for _, t in ipairs(req.tools) do
    if t.name == name then return true end
  end
end

local function run(req, w, name, args)
  if not has_tool(req, name) then
    local out = tool_list(req, w)
    table.insert(out, 1, { text = w.unknown(name) .. "\n" })
    return out
  end
  args = trim(args)
  if args == "" then args = "{}" end
  local value, why = json.decode(args)
  if value == nil then return lines({ w.bad_json(name, (why:gsub("^lua: json: ", ""))) }) end
  if type(value) ~= "table" or args:sub(1, 1) ~= "{" then return lines({ w.bad_json(name, "{…}") }) end
  return { { tools = { { index = 0, name = name, args = args } } }, { finish = "tool_calls", done = true } }
end

-- results gives the results of the calls that were asked for last, which nobody has told the person yet: those at the
-- end, or before what the person said meanwhile. The second value tells whether the person did.
local function results(req, w)
  local last = #req.messages
  while last > 0 and req.messages[last].role == "user" do last = last - 1 end
  local first = last + 1
  while first > 1 and req.messages[first - 1].role == "tool" do first = first - 1 end
  local out = {}
  for i = first, last do
    local m = req.messages[i]
    out[#out + 1] = (m.failed and w.failure or w.result)(m.name or "?")
    out[#out + 1] = m.text
  end
  return out, last < #req.messages
end

local asking = {
  what = true, who = true, whom = true, whose = true, when = true, where = true, which = true, why = true, how = true,
  ["do"] = true, does = true, did = true, is = true, are = true, am = true, was = true, were = true, can = true,
  could = true, will = true, would = true, should = true, have = true, has = true, had = true, may = true, tell = true,
}

-- asks tells a question from something that the person wants kept.
local function asks(text)
  if text:find("?", 1, true) or text:find("？", 1, true) then return true end
  for _, word in ipairs({ "什么", "谁", "哪", "吗", "几", "多少", "怎么", "怎样", "为何", "为什么", "告诉我", "呢" }) do
    if text:find(word, 1, true) then return true end
  end
  return asking[(text:lower():match("^[%a']+") or "")] or false
end

-- forms are the patterns of what offline itself says.
local forms = {}
for _, w in pairs(words) do
  for _, l in ipairs({ w.notice, w.tools, w.no_tools, w.result("\1"), w.failure("\1"), w.unknown("\1"), w.bad_json("\1", "\2") }) do
    forms[#forms + 1] = "^" .. l:gsub("%p", "%%%0"):gsub("\1", "%%S+"):gsub("\2", ".*")
  end
end

local function own(text)
  for _, form in ipairs(forms) do
    if text:find(form) then return true end
  end
  return false
end

-- worth tells whether something that memory brought up is worth telling: what offline itself said, and the tools that it
-- was told to run, would only repeat themselves.
local function worth(r, text)
  if r.speaker == "user" then return not named(text) and not bare[text] end
  return not own(text)
end

local function remember(req, w, question, attached)
  local out = { w.notice }
  if attached then out[#out + 1] = w.attached end
  local items = {}
  for _, r in ipairs(req.recalled) do
    local text = trim(r.text)
    if text ~= "" and text ~= question and worth(r, text) then
      items[#items + 1] = w.item(date(r.at), w.said[r.speaker] or r.speaker, text)
    end
  end
  if #items > 0 then
    out[#out + 1] = w.found
    for _, i in ipairs(items) do out[#out + 1] = i end
  elseif not asks(question) then
    out[#out + 1] = w.kept
  elseif req.memory_none or #req.recalled > 0 then
    out[#out + 1] = w.nothing
  end
  out[#out + 1] = w.add
  return lines(out)
end

local respond
function respond(req)
  local user = last_user(req)
  local text = trim(user and user.text or "")
  local question = trim(req.question ~= "" and req.question or text)
  local w = language(question)
  local told, more = results(req, w)
  if #told > 0 and not more then return lines(told) end
  if #told > 0 then
    local answer = respond({ messages = { user }, tools = req.tools, recalled = req.recalled, memory_none = req.memory_none, question = question })
    table.insert(answer, 1, { text = table.concat(told, "\n") .. "\n" })
    return answer
  end
  if bare[question] then return tool_list(req, w) end
  if own(question) then return lines({ question }) end -- the report of a resident, which has no model either: passed on
  local name, args = named(question)
  if name then return run(req, w, name, args) end
  local attached = false
  for _, p in ipairs(user and user.parts or {}) do
    attached = attached or p.type ~= "text" or p.text:sub(1, 12) == "[attachment "
  end
  return remember(req, w, question, attached)
end

return {
  contract = 1,
  name = "offline",
  version = "1.0.0",
  capabilities = { tools = true },
  respond = respond,
}
