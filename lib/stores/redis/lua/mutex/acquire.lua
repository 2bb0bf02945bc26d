-- Takes the lock, refreshes it where it is this owner's already, or says who has it. Safe to repeat.
-- KEYS  1 lock, 2 fence, 3 queue
-- ARGV  1 owner, 2 ttl ms, 3 fence ttl ms, 4 tokens to reserve (default 1), 5 '1' to join the queue (default: not)
-- Reply the first token, or {ms left (-1: without end), holder, waiters ahead}
local owner, ttl = ARGV[1], ARGV[2]

if redis.call('EXISTS', KEYS[1], KEYS[3]) > 0 then
  local holder = redis.call('GET', KEYS[1])
  if not holder then
    -- The head of the queue is offered the free lock for a second.
    holder = redis.call('ZPOPMIN', KEYS[3])[1]
    if holder ~= owner then redis.call('SET', KEYS[1], holder, 'PX', 1000) end
  end
  if holder ~= owner then
    local ahead = 0
    if ARGV[5] == '1' then
      if not redis.call('ZSCORE', KEYS[3], owner) then
        local time = redis.call('TIME')
        local last = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2] or 0
        -- Behind the last one, also when the server's clock went back.
        local score = math.max(last + 1, time[1] * 1000000 + time[2])
        redis.call('ZADD', KEYS[3], string.format('%.0f', score), owner)
      end
      -- A waiter asks every half second or more often: who does not ask for a minute is gone.
      redis.call('PEXPIRE', KEYS[3], 60000)
      ahead = redis.call('ZRANK', KEYS[3], owner)
    end
    return {redis.call('PTTL', KEYS[1]), holder, ahead}
  end
  ttl = math.max(ttl, redis.call('PTTL', KEYS[1]))
end

-- Microseconds, which fit a double until 2255: they grow also where the last token was lost.
local time = redis.call('TIME')
local token = time[1] .. string.format('%06d', time[2])
local last = redis.call('GET', KEYS[2])
if last and last + 1 > token + 0 then token = string.format('%.0f', last + 1) end

local reserved = token
if ARGV[4] and ARGV[4] ~= '1' then reserved = string.format('%.0f', token + ARGV[4] - 1) end
redis.call('SET', KEYS[2], reserved, 'PX', ARGV[3])
redis.call('SET', KEYS[1], owner, 'PX', ttl)
return token
