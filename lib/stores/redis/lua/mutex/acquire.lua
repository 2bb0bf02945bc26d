-- Takes locks, refreshes those that are their owners' already, or says who has them. Safe to repeat.
-- KEYS  for each: lock, fence, queue
-- ARGV  1 ms to keep the fence, 2 '1' where PUBLISH tells how many heard it; then for each: owner, ttl ms, tokens to reserve,
--       place in the queue ('': none), owner that gives the lock up in this step ('': none)
--       A place: owner, inbox ('': none), ms that an offer lasts, keys that its call chain holds; a line each.
-- Reply for each: the first token, or {ms left (-1: without end), holder, waiters ahead}, or an error
local time = redis.call('TIME')

-- The free lock goes to the first waiter whose process listens, or that has no inbox, for a moment: to confirm by asking again.
local function offer(lock, queue, asker)
  for _ = 1, redis.call('ZCARD', queue) do
    local owner, inbox, ms = string.match(redis.call('ZPOPMIN', queue)[1], '^(.-)\n(.-)\n(%d+)')
    if owner == asker then return nil end
    local heard = inbox == '' or redis.pcall('PUBLISH', inbox, owner)
    if heard ~= 0 or ARGV[2] ~= '1' then
      redis.call('SET', lock, owner, 'PX', ms)
      return owner
    end
  end
end

local function acquire(lock, fence, queue, owner, ttl, tokens, place, yields)
  if redis.call('EXISTS', lock, queue) > 0 then
    local holder = redis.call('GET', lock)
    if holder == owner then
      ttl = math.max(ttl, redis.call('PTTL', lock))
    elseif not holder or holder == yields then
      holder = offer(lock, queue, owner)
    end
    if holder and holder ~= owner then
      if place == '' then return {redis.call('PTTL', lock), holder, 0} end
      if not redis.call('ZSCORE', queue, place) then
        -- Behind the last one, also when the server's clock went back.
        local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2] or 0
        redis.call('ZADD', queue, string.format('%.0f', math.max(last + 1, time[1] * 1000000 + time[2])), place)
      end
      -- A waiter asks every half minute or more often: who does not ask for a minute is gone.
      redis.call('PEXPIRE', queue, 60000)
      return {redis.call('PTTL', lock), holder, redis.call('ZRANK', queue, place)}
    end
  end
  -- Microseconds, which fit a double until 2255: they grow also where the last token was lost.
  local token, last = time[1] * 1000000 + time[2], redis.call('GET', fence)
  if last and last + 1 > token then token = last + 1 end
  redis.call('SET', fence, string.format('%.0f', token + tokens - 1), 'PX', ARGV[1])
  redis.call('SET', lock, owner, 'PX', ttl)
  return string.format('%.0f', token)
end

local replies = {}
for i = 1, #KEYS / 3 do
  local done, reply = pcall(acquire, KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i], unpack(ARGV, 5 * i - 2, 5 * i + 2))
  replies[i] = done and reply or type(reply) == 'table' and reply or redis.error_reply(reply)
end
return replies
