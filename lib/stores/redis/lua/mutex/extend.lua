-- Pushes the end of a lock later, never nearer, and reserves more tokens for it, unless others queue.
-- KEYS  1 lock, 2 fence, 3 queue
-- ARGV  1 owner, 2 ttl ms, 3 tokens to reserve, 4 ms to keep the fence
-- Reply the first token, '' others queue, or nil: not this owner's
local call = redis.call
local holder = redis.pcall('GET', KEYS[1])
-- As in renew.lua.
if type(holder) == 'table' and not string.find(holder.err, 'WRONGTYPE') then return holder end
if holder ~= ARGV[1] then return false end
if call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then call('PEXPIRE', KEYS[1], ARGV[2]) end
if call('EXISTS', KEYS[3]) == 1 then return '' end
-- As in acquire.lua.
local time, last = call('TIME'), call('GET', KEYS[2])
local token = time[1] .. string.format('%06d', time[2])
if last and last + 1 > tonumber(token) then token = string.format('%.0f', last + 1) end
call('SET', KEYS[2], string.format('%.0f', token + ARGV[3] - 1), 'PX', string.format('%.0f', math.max(ARGV[4], 2 * ARGV[2])))
return token
