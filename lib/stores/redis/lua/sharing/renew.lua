-- Pushes the ends of many shares later, never nearer: an old request that is sent again must not shorten a lease.
-- KEYS  the locks; see holders.lua
-- ARGV  1 ttl ms, then the owner of each
-- Reply for each: 1 renewed, 0 lost
local ttl, time, replies = tonumber(ARGV[1]), redis.call('TIME'), {}
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i, key in ipairs(KEYS) do
  local owner = ARGV[1 + i]
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
return replies[2] and replies or replies[1]
