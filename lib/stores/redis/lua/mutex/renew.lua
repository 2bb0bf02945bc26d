-- Pushes the ends of many locks later, never nearer: an old request that is sent again must not shorten a lease.
-- KEYS  the locks; fences too, so that they do not run out under a lease that is held for long
-- ARGV  owner ('': of a fence) and ttl ms of each
-- Reply for each: 1 renewed, 0 lost
local replies = {}
for i, key in ipairs(KEYS) do
  local owner, ttl = ARGV[2 * i - 1], tonumber(ARGV[2 * i])
  local holder = redis.pcall('GET', key)
  -- A key of another type is not this owner's, and the rest of the batch is renewed. Any other failure tells nothing.
  if type(holder) == 'table' and not string.find(holder.err, 'WRONGTYPE') then return holder end
  replies[i] = 0
  if holder == owner or holder and owner == '' then
    if redis.call('PTTL', key) < ttl then redis.call('PEXPIRE', key, ttl) end
    replies[i] = 1
  end
end
return #replies == 1 and replies[1] or replies
