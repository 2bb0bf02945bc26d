-- Gives up an acquire: out of the queue, and out of the lock in case that it was granted or offered.
-- KEYS  1 lock, 2 queue
-- ARGV  1 owner
-- Reply 1 if it had the lock, else 0
redis.call('ZREM', KEYS[2], ARGV[1])
local holder = redis.pcall('GET', KEYS[1])
-- A key of another type is not this owner's. Any other failure tells nothing.
if type(holder) == 'table' and not string.find(holder.err, 'WRONGTYPE') then return holder end
if holder ~= ARGV[1] then return 0 end

local head = redis.call('ZPOPMIN', KEYS[2])[1]
if head then
  redis.call('SET', KEYS[1], head, 'PX', 1000)
else
  redis.call('DEL', KEYS[1])
end
return 1
