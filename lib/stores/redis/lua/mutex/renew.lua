-- Pushes the ends of many locks later, never nearer: an old request that is sent again must not shorten a lease.
-- KEYS  the locks; fences too, so that they do not run out under a lease that is held for long
-- ARGV  1 ttl ms, then the owner of each ('': of a fence)
-- Reply for each: 1 renewed, 0 lost
local call, replies, ttl = redis.call, {}, tonumber(ARGV[1])
-- A key of another type has no value here.
local holders = call('MGET', unpack(KEYS))
for i, key in ipairs(KEYS) do
  local holder, owner = holders[i], ARGV[1 + i]
  replies[i] = 0
  if holder == owner or holder and owner == '' then
    if call('PTTL', key) < ttl then call('PEXPIRE', key, ttl) end
    replies[i] = 1
  end
end
return replies[2] and replies or replies[1]
