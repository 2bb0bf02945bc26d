-- Pushes the end of a lock later, never nearer, and reserves more tokens for it, unless others queue. Behind ../tokens.lua.
-- KEYS  1 lock, 2 fence, 3 queue
-- ARGV  1 owner, 2 ttl ms, 3 tokens to reserve
-- Reply the first token, '' others queue, or nil: not this owner's
local holder = redis.pcall('GET', KEYS[1])
-- As in renew.lua.
if type(holder) == 'table' and not string.find(holder.err, 'WRONGTYPE') then return holder end
if holder ~= ARGV[1] then return false end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if redis.call('EXISTS', KEYS[3]) == 1 then return '' end
return reserve(KEYS[2], ARGV[3], 0, ARGV[2])
