-- Pushes the ends of many shares later, never nearer: an old request that is sent again must not shorten a lease.
-- KEYS  the locks; see holders.lua. Of locks in several slots of a Cluster only the first
-- ARGV  then the other locks; ttl ms, and the owner of each
-- Reply for each: 1 renewed, 0 lost
local count = (#KEYS + #ARGV - 1) / 2
local others = count - #KEYS
local ttl, time = tonumber(ARGV[others + 1]), redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local replies = {}
for i = 1, count do
  local key, owner = KEYS[i] or ARGV[i - 1], ARGV[others + 1 + i]
  local ends = redis.pcall('ZSCORE', key, owner)
  -- A key of another type is not this owner's, and the rest of the batch is renewed. Any other failure tells nothing.
  if type(ends) == 'table' and not string.find(ends.err, 'WRONGTYPE') then return ends end
  replies[i] = 0
  if type(ends) == 'string' and tonumber(ends) > now then
    -- First what needs no memory: a full server refuses to begin with the rest.
    redis.call('PEXPIREAT', key, now + math.max(ttl, redis.call('PTTL', key)))
    if tonumber(ends) < now + ttl then redis.call('ZADD', key, now + ttl, owner) end
    replies[i] = 1
  end
end
return #replies == 1 and replies[1] or replies
