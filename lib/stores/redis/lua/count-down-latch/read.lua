-- What a latch is, for the scripts of latches, which are sent behind this.
-- A hash: latch (its id), count, round (how often it was set); waiter:<owner> → inbox; line:<line> → number and reply of the last operation,
-- and the end of the time in which a repeat of it may come (ms). All of it expires together.
local call = redis.call
local latch = KEYS[1]

-- The id of the latch (nil: there is none) and other fields, or an error that tells what is there instead.
local function read(...)
  local kind = call('TYPE', latch).ok
  if kind == 'none' then return {} end
  local fields = kind == 'hash' and call('HMGET', latch, 'latch', ...) or {}
  if fields[1] then return fields end
  local other = kind == 'string' and 'mutex'
  if kind == 'zset' then
    local member, score = unpack(call('ZRANGE', latch, 0, 0, 'WITHSCORES'))
    other = tonumber(score) < 0 and string.match(member, '^(.*) %d+$')
  end
  if other then return redis.error_reply('WRONGTYPE count-down latch: ' .. other) end
  return redis.error_reply('WRONGTYPE no count-down latch, but a ' .. kind)
end

-- Whether the operation that is now the last one of its line is this one, or a later one, and what it was answered.
local function known(last, number)
  local latest, reply = string.match(last or '0 0', '^(%d+) (%d+)')
  return tonumber(latest) - tonumber(number), tonumber(reply)
end
