-- Gives the lock back: to the head of the queue, which is offered it for a second, or to nobody. Safe to repeat after a minHold.
-- KEYS  1 lock, 2 queue
-- ARGV  1 owner, 2 ms to keep it taken yet (default 0)
-- Reply 1 released, 0 not this owner's
local holder = redis.pcall('GET', KEYS[1])
-- A key of another type is not this owner's. Any other failure tells nothing.
if type(holder) == 'table' and not string.find(holder.err, 'WRONGTYPE') then return holder end
if holder ~= ARGV[1] then return holder == 'kept:' .. ARGV[1] and 1 or 0 end

if ARGV[2] then
  -- Another value, so that no late renewal can make the stay longer.
  redis.call('SET', KEYS[1], 'kept:' .. ARGV[1], 'PX', ARGV[2])
  return 1
end

local head = redis.call('ZPOPMIN', KEYS[2])[1]
if head then
  redis.call('SET', KEYS[1], head, 'PX', 1000)
else
  redis.call('DEL', KEYS[1])
end
return 1
