-- Values as they come from a server, which may send what it likes.

-- str gives a text that is not empty, else nil.
local function str(v)
  if type(v) == "string" and v ~= "" then return v end
end

-- num gives a number, else nil.
local function num(v)
  if type(v) == "number" then return v end
end

-- list gives a table, also where there is none.
local function list(v)
  if type(v) == "table" then return v end
  return {}
end

-- vectors gives the embeddings of {data = [{index, embedding}]}. Their order is
-- not promised; the index is.
local function vectors(body)
  local data = list(json.get(body, "data"))
  local out = json.array()
  for i, d in ipairs(data) do
    local at = json.get(d, "index")
    if type(at) ~= "number" or at < 0 or at >= #data or at % 1 ~= 0 then at = i - 1 end
    out[at + 1] = json.get(d, "embedding")
  end
  return out
end

-- items gives the replay material of a message, with an empty table in the place
-- of what is none.
local function items(m)
  local out = {}
  for i, item in ipairs(list(m.replay and json.decode(m.replay))) do
    if type(item) ~= "table" then item = {} end
    for _, name in ipairs({ "at", "calls", "till", "of" }) do item[name] = num(item[name]) end
    out[i] = item
  end
  return out
end

return { items = items, str = str, num = num, list = list, vectors = vectors }
