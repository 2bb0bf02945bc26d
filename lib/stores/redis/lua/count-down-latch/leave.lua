-- Forgets one who waited for a latch.
-- KEYS  1 latch
-- ARGV  1 owner of the one who waited
-- Reply 1 there was such a one, 0 there was none
local reply = redis.pcall('HDEL', KEYS[1], 'waiter:' .. ARGV[1])
-- Where there is no latch any more, nobody waits for it. Any other failure tells nothing.
if type(reply) == 'table' then return string.find(reply.err, 'WRONGTYPE') and 0 or reply end
return reply
