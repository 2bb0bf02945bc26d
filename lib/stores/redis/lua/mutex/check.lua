-- Looks without touching.
-- KEYS  1 lock, 2 fence, 3 queue
-- ARGV  1 owner, 2 its entry in the queue ('': none; see acquire.lua)
-- Reply {'held' | 'queued' | 'taken' | 'free', ms left (-1: without end, -2: free)}, and of a key that is held its holder and the last token ('': none)
local holder = redis.call('GET', KEYS[1])
local reply = {'free', redis.call('PTTL', KEYS[1])}
if holder == ARGV[1] then
  reply[1] = 'held'
elseif redis.call('ZSCORE', KEYS[3], ARGV[2]) then
  reply[1] = 'queued'
elseif holder then
  reply[1] = 'taken'
end
if holder then
  reply[3] = holder
  reply[4] = redis.call('GET', KEYS[2]) or ''
end
return reply
