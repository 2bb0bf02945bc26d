-- Keeps the fences of leases that are held longer than a fence lasts by itself.
-- KEYS  the fences
-- ARGV  ms to keep each from now on, at least
-- Reply for each: 1 its end is later now, 0 it is not
local replies = {}
for i, fence in ipairs(KEYS) do
  local left = redis.call('PTTL', fence)
  replies[i] = left > 0 and left < tonumber(ARGV[i]) and redis.call('PEXPIRE', fence, ARGV[i]) or 0
end
return #replies == 1 and replies[1] or replies
