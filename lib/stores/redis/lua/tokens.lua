-- Fencing tokens, for the scripts that give them. A fence is the last token of a key. It is kept for FENCE_TIMEOUT ms at least, a constant of the store.
local time = redis.call('TIME')
-- Microseconds fit a double until 2255. Tokens begin there, so that they grow also where the last one was lost.
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)

-- Reserves so many tokens and returns the first: larger than any before, and no smaller than the floor. 0: the last one is returned, if there is one.
-- The end of the fence never comes nearer, since several holders may share it.
local function reserve(fence, tokens, floor, ttl)
  local last = tonumber(redis.call('GET', fence) or 0)
  local token = math.max(floor, tokens == '0' and last > 0 and last or math.max(last + 1, micros))
  local keep = math.max(FENCE_TIMEOUT, 2 * ttl, redis.call('PTTL', fence))
  redis.call('SET', fence, string.format('%.0f', token + math.max(tokens, 1) - 1), 'PX', string.format('%.0f', keep))
  return token
end
