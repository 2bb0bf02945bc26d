-- Takes locks, refreshes those that are their owners' already, or says who has them. Safe to repeat.
-- KEYS  for each: lock, fence, queue
-- ARGV  1 '1' where PUBLISH tells how many heard it, 2 ms to keep the fence; then for each: owner, ttl ms, tokens to reserve,
--       place in the queue ('': none), owner that gives the lock up in this step ('': none)
--       A place: owner, inbox ('': none), ms that an offer lasts, keys that its call chain holds; a line each. Of one that is ready for a
--       grant instead, the third line goes on: ttl ms, tokens to reserve, ms from its coming for which it is.
-- Reply for each: the first token, or {ms left (-1: without end), holder, waiters ahead}, or an error
local call, time = redis.call, redis.call('TIME')
-- Microseconds, which fit a double until 2255: tokens grow also where the last one was lost.
local clock = time[1] .. string.format('%06d', time[2])
local micros = tonumber(clock)

-- The first of so many new ones.
local function reserve(fence, tokens)
  local token, last = clock, call('GET', fence)
  if last and last + 1 > micros then token = string.format('%.0f', last + 1) end
  call('SET', fence, tokens == '1' and token or string.format('%.0f', token + tokens - 1), 'PX', ARGV[2])
  return token
end

-- The free lock goes to the first waiter whose process listens, or that has no inbox: for a moment, to confirm by asking again; or, to one that
-- is ready, as a grant with its first token. Its length counts for the waiter from when it sent the request that brought it here.
local function offer(lock, fence, queue, asker)
  for _ = 1, call('ZCARD', queue) do
    local place, since = unpack(call('ZPOPMIN', queue))
    local owner, inbox, ms, ttl, tokens, ready = string.match(place, '^(.-)\n(.-)\n(%d+) ?(%d*) ?(%d*) ?(%d*)')
    if owner == asker then return nil end
    local isReady = ready ~= '' and math.abs(micros - since) < ready * 1000
    local heard = inbox == '' or redis.pcall('PUBLISH', inbox, isReady and owner .. '\n' .. reserve(fence, tokens) or owner)
    if heard ~= 0 or ARGV[1] ~= '1' then
      call('SET', lock, owner, 'PX', isReady and (tonumber(heard) or 0) > 0 and ttl or ms)
      return owner
    end
  end
end

local function acquire(i)
  local lock, fence, queue = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]
  local owner, ttl, tokens, place, yields = ARGV[5 * i - 2], ARGV[5 * i - 1], ARGV[5 * i], ARGV[5 * i + 1], ARGV[5 * i + 2]
  if call('EXISTS', lock, queue) > 0 then
    local holder = call('GET', lock)
    if holder == owner then
      ttl = math.max(ttl, call('PTTL', lock))
    elseif not holder or (yields ~= '' and holder == yields) then
      holder = offer(lock, fence, queue, owner)
    end
    if holder and holder ~= owner then
      if place == '' then return {call('PTTL', lock), holder, 0} end
      if not call('ZSCORE', queue, place) then
        -- Where it was before it had an inbox; else behind the last one, also when the server's clock went back.
        local deaf = string.gsub(place, '\n[^\n]*', '\n', 1)
        local since = call('ZSCORE', queue, deaf)
        local last = not since and call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2] or 0
        call('ZADD', queue, since or string.format('%.0f', math.max(last + 1, micros)), place)
        if since then call('ZREM', queue, deaf) end
      end
      -- A waiter asks every half minute or more often: who does not ask for a minute is gone.
      call('PEXPIRE', queue, 60000)
      return {call('PTTL', lock), holder, call('ZRANK', queue, place)}
    end
  end
  local token = reserve(fence, tokens)
  call('SET', lock, owner, 'PX', ttl)
  return token
end

local replies = {}
for i = 1, #KEYS / 3 do
  local done, reply = pcall(acquire, i)
  if not done then
    local key, problem = KEYS[3 * i - 2], type(reply) == 'table' and reply.err or reply
    -- A wrong type is that key's own: another kind of lock has a name. Anything else, such as a demoted server, concerns the connection.
    local other = string.find(problem, 'WRONGTYPE') and (redis.pcall('ZRANGE', key, 0, 0)[1] or redis.pcall('HEXISTS', key, 'latch') == 1 and 'count-down latch')
    reply = redis.error_reply(other and 'WRONGTYPE mutex: ' .. other or string.match(problem, '%u+ .*') or problem)
    if not string.find(problem, 'WRONGTYPE') then return reply end
  end
  replies[i] = reply
end
return replies
