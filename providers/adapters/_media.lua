-- What the OpenAI family says of sounds and schemas.

local get = json.get

local sounds = { mpeg = "mp3", ["x-wav"] = "wav", wave = "wav", ["vnd.wave"] = "wav", ["x-m4a"] = "m4a", mp4 = "m4a" }

-- sound gives the format of a media type.
local function sound(media_type)
  local kind = media_type:match("/([^;]*)")
  return sounds[kind] or kind
end

-- closed tells that every object of a schema names all that it may hold and wants
-- all of it: only such a schema can be followed to the letter, any other is
-- refused when it is asked for so.
local function closed(s)
  if type(s) ~= "table" then return true end
  local properties, required = get(s, "properties"), get(s, "required")
  if get(s, "type") == "object" or properties then
    if s.additionalProperties ~= false then return false end
    local wanted = {}
    for _, name in ipairs(type(required) == "table" and required or {}) do wanted[name] = true end
    for name, p in pairs(type(properties) == "table" and properties or {}) do
      if not wanted[name] or not closed(p) then return false end
    end
  end
  for _, key in ipairs({ "anyOf", "allOf", "oneOf" }) do
    for _, p in ipairs(type(get(s, key)) == "table" and s[key] or {}) do
      if not closed(p) then return false end
    end
  end
  for _, key in ipairs({ "$defs", "definitions" }) do
    for _, p in pairs(type(get(s, key)) == "table" and s[key] or {}) do
      if not closed(p) then return false end
    end
  end
  return closed(get(s, "items"))
end

local function strict(schema) return closed(json.decode(json.encode(schema))) end

return { sound = sound, strict = strict }
