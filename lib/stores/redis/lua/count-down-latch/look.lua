-- Looks at a latch and, while it is being counted down, notes a waiter. Behind read.lua.
-- KEYS  1 latch
-- ARGV  1 owner of the waiter ('': it is not to be woken), 2 its inbox
-- Reply {count, id, round, ms left (-1: without end)}, {} where there is no latch, or an error
local fields = read('count', 'round')
if fields.err then return fields end
local id, count, round = unpack(fields)
if not id then return {} end
if ARGV[1] ~= '' and count ~= '0' then call('HSET', latch, 'waiter:' .. ARGV[1], ARGV[2]) end
return {count, id, round, call('PTTL', latch)}
