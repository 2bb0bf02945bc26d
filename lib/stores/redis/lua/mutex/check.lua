-- Looks without touching.
-- KEYS  1 lock, 2 queue
-- ARGV  1 owner, 2 its place in the queue ('': none; see acquire.lua)
-- Reply {'held' | 'queued' | 'taken' | 'free', ms left (-1: without end, -2: free)}
local holder = redis.call('GET', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
if holder == ARGV[1] then return {'held', left} end
if redis.call('ZSCORE', KEYS[2], ARGV[2]) then return {'queued', left} end
if holder then return {'taken', left} end
return {'free', left}
