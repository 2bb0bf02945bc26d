-- Keeps the fences of leases that are held longer than a fence lasts by itself.
-- KEYS  the fences
-- ARGV  ms to keep each from now on, at least
-- Reply how many there are
local count = 0
for i, fence in ipairs(KEYS) do
  local left = redis.call('PTTL', fence)
  if left > 0 and left < tonumber(ARGV[i]) then count = count + redis.call('PEXPIRE', fence, ARGV[i]) end
end
return count
