-- Sets a latch where there is none or where it is counted down. Safe to repeat: an operation that set it answers so again. Behind read.lua.
-- KEYS  1 latch
-- ARGV  1 ms to keep the latch from now on, at least, 2 line of operations, 3 number of this one, larger than any before it in its line,
--       4 count
-- Reply 1 set, 0 it is still being counted down, or an error
local ttl, line, number, count = ARGV[1], 'line:' .. ARGV[2], ARGV[3], ARGV[4]
local fields = read('count', line)
if fields.err then return fields end
local id, left, last = unpack(fields)
local later, reply = known(last, number)
if later == 0 then return reply end
-- An old request that comes late: nobody waits for its answer.
if later > 0 or (id and left ~= '0') then return 0 end

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if id then
  local all = call('HGETALL', latch)
  for i = 1, #all, 2 do
    local ends = string.find(all[i], '^line:') and string.match(all[i + 1], '%d+$')
    if ends and tonumber(ends) < now then call('HDEL', latch, all[i]) end
  end
end
local record = string.format('%s 1 %.0f', number, now + ttl)
call('HSET', latch, 'latch', id or (ARGV[2] .. ':' .. number), 'count', count, line, record)
call('HINCRBY', latch, 'round', 1)
if call('PTTL', latch) < tonumber(ttl) then call('PEXPIRE', latch, ttl) end
return 1
