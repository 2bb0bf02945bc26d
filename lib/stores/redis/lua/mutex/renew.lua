-- Pushes the ends of many locks later, never nearer: an old request that is sent again must not shorten a lease.
-- KEYS  the locks; fences too, so that they do not run out under a lease that is held for long
-- ARGV  ttl ms, and the owner of each ('': of a fence)
-- Reply for each: 1 renewed, 0 lost
local call, ttl = redis.call, tonumber(ARGV[1])
-- A key of another type has no value here.
local replies = call('MGET', unpack(KEYS))
for i, holder in ipairs(replies) do
  local owner = ARGV[i + 1]
  if holder == owner or holder and owner == '' then
    local key = KEYS[i]
    if call('PTTL', key) < ttl then call('PEXPIRE', key, ARGV[1]) end
    replies[i] = 1
  else
    replies[i] = 0
  end
end
return #replies == 1 and replies[1] or replies
