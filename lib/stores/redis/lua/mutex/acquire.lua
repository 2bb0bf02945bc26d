-- Takes locks, refreshes those that are their owners' already, or says who has them. Safe to repeat. Behind offer.lua.
-- KEYS  for each: lock, fence, queue
-- ARGV  1 as in inbox.lua, 2 ms to keep the fence; then for each: owner, ttl ms, tokens to reserve, place in the queue ('': none), owner that
--       gives the lock up in this step ('': none)
-- Reply for each: the first token, or {ms left (-1: without end), holder ('': unknown), waiters ahead}, or an error. Where an owner gives the lock
--       up: {1 it was its own, 0 it was not, the reply}
local time = call('TIME')
-- Microseconds, which fit a double until 2255: tokens grow also where the last one was lost.
local clock = time[1] .. string.format('%06d', time[2])
local micros = tonumber(clock)

local function join(queue, place)
  if call('ZSCORE', queue, place) then return end
  -- Where it was before it had an inbox; else behind the last one, also when the server's clock went back.
  local deaf = string.gsub(place, '\n[^\n]*', '\n', 1)
  local since = call('ZSCORE', queue, deaf)
  local last = not since and call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2] or 0
  call('ZADD', queue, since or string.format('%.0f', math.max(last + 1, micros)), place)
  if since then call('ZREM', queue, deaf) end
end

local function take(lock, fence, owner, ttl, tokens)
  local token, last = clock, call('GET', fence)
  if last and last + 1 > micros then token = string.format('%.0f', last + 1) end
  local block = tokens == '1' and token or string.format('%.0f', token + tokens - 1)
  call('SET', fence, block, 'PX', fenceTime(ARGV[2], ttl))
  call('SET', lock, owner, 'PX', ttl)
  return token
end

local function acquire(lock, fence, queue, owner, ttl, tokens, place, yields)
  local isIdle = call('EXISTS', lock, queue) == 0
  local holder = not isIdle and call('GET', lock)
  local wasYielded = yields ~= '' and holder == yields
  if holder == owner then
    -- Never nearer: a request that comes late must not shorten the lease. An offer does not last longer than its waiter's first lease would.
    ttl = math.max(ttl, call('PTTL', lock))
  elseif wasYielded or not (isIdle or holder) then
    holder = offer(lock, queue, owner)
    if holder == '' then call('DEL', lock) end
  end
  local reply
  if holder and holder ~= owner then
    if place ~= '' then
      join(queue, place)
      -- A waiter asks every half minute or more often: who does not ask for a minute is gone.
      call('PEXPIRE', queue, 60000)
    end
    reply = {holder == '' and 0 or call('PTTL', lock), holder, place ~= '' and call('ZRANK', queue, place) or 0}
  else
    reply = take(lock, fence, owner, ttl, tokens)
  end
  return yields ~= '' and {wasYielded and 1 or 0, reply} or reply
end

local replies = {}
for i = 1, #KEYS / 3 do
  local done, reply = pcall(acquire, KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i], unpack(ARGV, 5 * i - 2, 5 * i + 2))
  if not done then
    local key, problem = KEYS[3 * i - 2], type(reply) == 'table' and reply.err or reply
    -- A wrong type is that key's own: another kind of lock has a name. Anything else, such as a demoted server, concerns the connection.
    local other = string.find(problem, 'WRONGTYPE') and (redis.pcall('ZRANGE', key, 0, 0)[1] or redis.pcall('HEXISTS', key, 'latch') == 1 and 'count-down latch')
    reply = redis.error_reply(other and 'WRONGTYPE mutex: ' .. other or match(problem, '%u+ .*') or problem)
    if not string.find(problem, 'WRONGTYPE') then return reply end
  end
  replies[i] = reply
end
return replies
