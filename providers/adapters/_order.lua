-- Replay material that has a place in the answer: before how much of the text
-- and how many calls each item stood, and an assistant message in that order
-- again. Items are put down with place(), finished with places() and walked with
-- weave().

local read = use("_read")

-- place notes where an item stands. state.said counts the bytes of text so far,
-- state.called the calls.
local function place(state, item)
  item.at, item.calls = state.said or 0, state.called or 0
  state.items = state.items or {}
  state.items[#state.items + 1] = item
  return item
end

-- places gives what place() noted, once, or nil. Where all stands before all text and
-- calls, nothing is said of places.
local function places(state)
  local list = state.items
  if not list or #list == 0 then return nil end
  local moved = false
  for _, item in ipairs(list) do moved = moved or item.at > 0 or item.calls > 0 or (item.till or 0) > 0 end
  for _, item in ipairs(list) do
    if moved then item.of = state.said or 0 else item.at, item.calls = nil, nil end
  end
  state.items = nil
  return list
end

-- weave walks an assistant message: put.item(item, i, text), put.text(text) and
-- put.call(call, n) are called in the order that the answer had. An item with
-- till is given the text up to there, which is its own. A text that was changed
-- since has no places any more: then the items come first.
local function weave(m, put)
  local items = read.items(m)
  local same = true
  for _, item in ipairs(items) do same = same and (not item.of or item.of == #m.text) end
  local said, called = 0, 0
  local function upto(at, calls)
    if at > said then
      put.text(m.text:sub(said + 1, at))
      said = at
    end
    while called < calls and m.calls[called + 1] do
      called = called + 1
      put.call(m.calls[called], called)
    end
  end
  for i, item in ipairs(items) do
    if same then upto(item.at or 0, item.calls or 0) end
    local own = ""
    if same and item.till and item.till > said then own, said = m.text:sub(said + 1, item.till), item.till end
    put.item(item, i, own)
  end
  upto(#m.text, #m.calls)
end

-- last_question gives the index of the last message of a person: what comes
-- after it is the turn that is still open.
local function last_question(messages)
  for i = #messages, 1, -1 do
    if messages[i].role == "user" then return i end
  end
  return 0
end

-- called gives the names of the tools that the history has called, in order:
-- some vendors refuse calls whose tools are not declared.
local function called(messages)
  local seen, out = {}, {}
  for _, m in ipairs(messages) do
    for _, c in ipairs(m.calls) do
      if not seen[c.name] then
        seen[c.name] = true
        out[#out + 1] = c.name
      end
    end
  end
  table.sort(out)
  return out
end

return { called = called, place = place, places = places, weave = weave, last_question = last_question }
