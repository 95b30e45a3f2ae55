-- Thoughts that a model writes into its text, between tags at its beginning.

local open_tag, close_tag = "<think>", "</think>"

local function trimmed(s)
  local i = #s
  while i > 0 and s:find("^%s", i) do i = i - 1 end
  return s:sub(1, i), s:sub(i + 1)
end

local tagged = {
  start = function(t, s)
    local space, rest = s:match("^(%s*)(.*)$")
    if rest:sub(1, #open_tag) == open_tag then
      t.phase, t.seen, t.open = "lead", true, space .. open_tag
      return rest:sub(#open_tag + 1)
    elseif open_tag:sub(1, #rest) == rest then
      t.held = s
      return ""
    end
    t.phase = "out"
    return s
  end,
  lead = function(t, s)
    local space, rest = s:match("^(%s*)(.*)$")
    t.open = t.open .. space
    if rest ~= "" then t.phase = "thinks" end
    return rest
  end,
  thinks = function(t, s, piece)
    local at = s:find(close_tag, 1, true)
    local keep = 0
    if not at then
      for n = math.min(#close_tag - 1, #s), 1, -1 do
        if s:sub(-n) == close_tag:sub(1, n) then keep = n break end
      end
      at = #s - keep + 1
    end
    local thought, space = trimmed(s:sub(1, at - 1))
    piece.reasoning = (piece.reasoning or "") .. thought
    if t.all then table.insert(t.all, thought) end
    if s:sub(at, at + #close_tag - 1) == close_tag then
      t.phase, t.close = "gap", space .. close_tag
      return s:sub(at + #close_tag)
    end
    t.held = space .. s:sub(at)
    return ""
  end,
  gap = function(t, s)
    local space, rest = s:match("^(%s*)(.*)$")
    t.close = t.close .. space
    if rest ~= "" then t.phase = "out" end
    return rest
  end,
}

-- untag takes a text apart that comes in pieces; what might become a tag, or
-- stands around one, is held back. state.tags keeps the bytes around the
-- thoughts, which must go back as they came. mode "implied" begins inside of
-- the thoughts.
local function untag(state, text, piece, mode)
  local t = state.tags
  if not t then
    local implied = mode == "implied"
    t = { phase = implied and "lead" or "start", held = "", open = "", close = "", seen = implied, all = implied and {} or nil }
    state.tags = t
  end
  local s = t.held .. text
  t.held = ""
  while s ~= "" and t.phase ~= "out" do s = tagged[t.phase](t, s, piece) end
  if s ~= "" then piece.text = (piece.text or "") .. s end
end

-- untagged gives what was held back when the text has ended.
local function untagged(state, piece)
  local t = state.tags
  if not t then return end
  local held, phase = t.held, t.phase
  t.held = ""
  if phase == "start" and held ~= "" then
    piece.text = (piece.text or "") .. held
  elseif phase == "thinks" then
    t.phase = "out"
    if held ~= "" then piece.reasoning = (piece.reasoning or "") .. held end
    -- What was taken for thoughts never ended: it was the answer.
    if t.all then
      t.seen = false
      piece.text = (piece.text or "") .. table.concat(t.all) .. held
    end
  end
end

return { untag = untag, untagged = untagged }
