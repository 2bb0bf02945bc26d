-- Takes the lock, refreshes it where it is this owner's already, or says who has it. Safe to repeat.
-- KEYS  1 lock, 2 fence, 3 queue
-- ARGV  1 owner, 2 ttl ms, 3 tokens to reserve, 4 '1' to join the queue, 5 fence ttl ms, 6 offer ms, 7 queue ttl ms
-- Reply {1, first token} or {0, ms left (-1: without end), holder, waiters ahead}
local owner = ARGV[1]
local holder = redis.call('GET', KEYS[1])

if not holder then
  local head = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
  if head then
    if head ~= owner then
      redis.call('SET', KEYS[1], head, 'PX', ARGV[6])
      holder = head
    end
    redis.call('ZREM', KEYS[3], head)
  end
end

if holder and holder ~= owner then
  local ahead = 0
  if ARGV[4] == '1' then
    if not redis.call('ZSCORE', KEYS[3], owner) then
      local time = redis.call('TIME')
      local last = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2] or 0
      -- Behind the last one, also when the server's clock went back.
      local score = math.max(last + 1, time[1] * 1000000 + time[2])
      redis.call('ZADD', KEYS[3], string.format('%.0f', score), owner)
    end
    redis.call('PEXPIRE', KEYS[3], ARGV[7])
    ahead = redis.call('ZRANK', KEYS[3], owner)
  end
  return {0, redis.call('PTTL', KEYS[1]), holder, ahead}
end

local px = tonumber(ARGV[2])
if holder then px = math.max(px, redis.call('PTTL', KEYS[1])) end

local time = redis.call('TIME')
local token = math.max((redis.call('GET', KEYS[2]) or 0) + 1, time[1] * 1000000 + time[2])
redis.call('SET', KEYS[2], string.format('%.0f', token + ARGV[3] - 1), 'PX', ARGV[5])
redis.call('SET', KEYS[1], owner, 'PX', px)
return {1, string.format('%.0f', token)}
