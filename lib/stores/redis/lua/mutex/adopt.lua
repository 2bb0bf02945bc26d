-- Changes the owner of a lock, if the old one has it, and reserves tokens for the new one. Safe to repeat. Behind ../tokens.lua.
-- KEYS  1 lock, 2 fence
-- ARGV  1 owner, 2 the owner that hands it over, 3 ttl ms, 4 tokens to reserve
-- Reply the first token, or nil: neither has it
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' and not string.find(holder.err, 'WRONGTYPE') then return holder end
if holder ~= ARGV[1] and holder ~= ARGV[2] then return false end
-- Never nearer for the owner itself: a request that comes late must not shorten its lease.
local ttl = math.max(ARGV[3], holder == ARGV[1] and redis.call('PTTL', KEYS[1]) or 0)
local token = reserve(KEYS[2], ARGV[4], 0, ttl)
redis.call('SET', KEYS[1], ARGV[1], 'PX', ttl)
return token
