-- Counts a latch down by one and, at 0, wakes all waiters. Safe to repeat: an operation counts once, also where the latch was set again
-- since. Behind read.lua.
-- KEYS  1 latch
-- ARGV  1 ms to keep the latch from now on, at least, 2 line of operations, 3 number of this one, larger than any before it in its line
-- Reply the count that is left (0 where there is no latch), or an error
local ttl, line, number = ARGV[1], 'line:' .. ARGV[2], ARGV[3]
local fields = read('count', line)
if fields.err then return fields end
local id, count, last = unpack(fields)
if not id then return 0 end
count = tonumber(count)
local later, reply = known(last, number)
if later == 0 then return reply end
-- An old request that comes late: nobody waits for its answer.
if later > 0 then return count end

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local left = string.format('%.0f', math.max(count - 1, 0))
call('HSET', latch, 'count', left, line, string.format('%s %s %.0f', number, left, now + ttl))
if count == 0 then return 0 end
if call('PTTL', latch) < tonumber(ttl) then call('PEXPIRE', latch, ttl) end
if left == '0' then
  local all = call('HGETALL', latch)
  for i = 1, #all, 2 do
    local owner = string.match(all[i], '^waiter:(.*)')
    if owner then
      call('HDEL', latch, all[i])
      -- A client without the right to publish counts all the same.
      redis.pcall('PUBLISH', all[i + 1], owner)
    end
  end
end
return tonumber(left)
