-- Pushes the ends of many locks later, never nearer: an old request that is sent again must not shorten a lease.
-- KEYS  the locks; fences too, so that they do not run out under a lease that is held for long. Of locks in several slots of a Cluster only the first
-- ARGV  then the other locks; ttl ms, and the owner of each ('': of a fence)
-- Reply for each: 1 renewed, 0 lost
local call, replies = redis.call, {}
local count = (#KEYS + #ARGV - 1) / 2
local others = count - #KEYS
local ttl = tonumber(ARGV[others + 1])
-- A key of another type has no value here. One command does not read keys of several slots.
if others == 0 then replies = call('MGET', unpack(KEYS)) end
for i = 1, count do
  local key, owner = KEYS[i] or ARGV[i - 1], ARGV[others + 1 + i]
  local holder = replies[i]
  if others > 0 then holder = call('MGET', key)[1] end
  if holder == owner or holder and owner == '' then
    if call('PTTL', key) < ttl then call('PEXPIRE', key, ttl) end
    replies[i] = 1
  else
    replies[i] = 0
  end
end
return #replies == 1 and replies[1] or replies
