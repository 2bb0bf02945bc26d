-- Looks without touching.
-- KEYS  1 lock, 2 fence, 3 queue; see holders.lua
-- ARGV  1 owner, 2 its entry in the queue ('': none)
-- Reply {'held' | 'queued' | 'taken' | 'free', ms left (of another's lease: of the longest; -2: free)}, and the holder of that lease
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = redis.call('ZSCORE', KEYS[1], ARGV[1])
if ends and tonumber(ends) > now then return {'held', ends - now, ARGV[1]} end
local left = redis.call('PTTL', KEYS[1])
-- In its last millisecond a key is there, and its lease has run out.
local holder = left > 0 and redis.call('ZREVRANGE', KEYS[1], 0, 0)[1]
if redis.call('ZSCORE', KEYS[3], ARGV[2]) then return {'queued', left, holder} end
return {left > 0 and 'taken' or 'free', left, holder}
