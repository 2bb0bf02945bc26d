-- Gives the lock back: to the head of the queue for a moment, in which it takes it, or to nobody. Safe to repeat after a minHold.
-- KEYS  1 lock, 2 queue
-- ARGV  1 owner, 2 ms to keep it taken yet, 3 offer ms
-- Reply 1 released, 0 not this owner's
local kept = 'kept:' .. ARGV[1]
local holder = redis.call('GET', KEYS[1])
if holder == kept then return 1 end
if holder ~= ARGV[1] then return 0 end

if tonumber(ARGV[2]) > 0 then
  -- Another value, so that no late renewal can make the stay longer.
  redis.call('SET', KEYS[1], kept, 'PX', ARGV[2])
  return 1
end

local head = redis.call('ZPOPMIN', KEYS[2])[1]
if head then
  redis.call('SET', KEYS[1], head, 'PX', ARGV[3])
else
  redis.call('DEL', KEYS[1])
end
return 1
