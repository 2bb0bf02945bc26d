-- Takes shares of locks, refreshes those that are their owners' already, or says who has them. Safe to repeat. Behind holders.lua.
-- KEYS  for each: lock, fence, queue
-- ARGV  1 as in inbox.lua, 2 ms to keep the fence; then for each: owner, ttl ms, tokens to reserve (0: the last
--       one is asked for), permits in all, place in the queue, '1' to stay there, rank, owner whose hold is not in the way ('': none)
-- Reply for each: the first token, or {ms left (-1: unknown), a holder ('': unknown), waiters ahead}, or an error

-- What kind of lock the key is, if any, and its first member.
local function kindOf(key, queue)
  local first = redis.pcall('ZRANGE', key, 0, 0, 'WITHSCORES')
  if first.err and redis.pcall('HEXISTS', key, 'latch') == 1 then return 'count-down latch' end
  if first.err then return type(redis.pcall('GET', key)) == 'string' and 'mutex' or error(first.err) end
  if first[1] then return first[2] + 0 < 0 and match(first[1], '^(.*) %d+$') or 'data', first[1], first[2] end
  local place = call('ZRANGE', queue, 0, 0)[1]
  return place and (select(5, match(place, PLACE)) or 'mutex')
end

return answerAll(#KEYS / 3, function(i)
  local key, fence, queue = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]
  local owner, ttl, tokens, permits, place, stays, rank, beside = unpack(ARGV, 8 * i - 5, 8 * i + 2)
  local _, _, _, count, kind = match(place, PLACE)
  local other, first, minus = kindOf(key, queue)
  if other and other ~= kind then error('WRONGTYPE ' .. kind .. ': ' .. other) end
  local name, lock, isQueue = kind .. ' ' .. permits, open(key, minus or -1, permits), call('EXISTS', queue) == 1
  if first and first ~= name then call('ZREM', key, first) end
  local held = lock.taken > 0 and call('ZSCORE', key, owner)
  local own = beside ~= '' and call('ZSCORE', key, beside) and permitsOf(lock, beside) or 0
  local isGuest = false
  if held then
    call('ZADD', key, math.max(held, now + ttl), owner)
  elseif (own > 0 or not isQueue) and lock.taken - own + count <= lock.permits then
    hold(lock, owner, count, ttl)
  elseif (isQueue or stays == '1') and not call('ZSCORE', queue, place) then
    -- Where it was before it had an inbox; else behind the last one of its rank, which begins 2^52 microseconds after the one before; also when
    -- the server's clock went back.
    local since = call('ZSCORE', queue, deafOf(place))
    local last = not since and call('ZREVRANGEBYSCORE', queue, (rank + 1) * 2 ^ 52, 0, 'WITHSCORES', 'LIMIT', 0, 1)[2] or 0
    call('ZADD', queue, since or math.max(last + 1, rank * 2 ^ 52 + micros), place)
    if since then call('ZREM', queue, deafOf(place)) end
    isGuest = stays ~= '1' and not since
  end
  local goesOn = isQueue and serve(lock, queue, owner, ttl)
  -- Who does not stay holds up nobody.
  if isGuest and call('ZREM', queue, place) == 1 then serve(lock, queue) end
  close(lock, name)

  if held or lock.new[owner] then
    if isQueue then leave(queue, place) end
    local last = tonumber(call('GET', fence) or 0)
    local token = tokens == '0' and last > 0 and last or math.max(last + 1, micros)
    call('SET', fence, string.format('%.0f', token + math.max(tokens, 1) - 1), 'PX', fenceTime(math.max(ARGV[2], call('PTTL', fence)), ttl))
    return string.format('%.0f', token)
  end
  -- A waiter asks every half minute or more often: who does not ask for a minute is gone.
  if stays == '1' then call('PEXPIRE', queue, 60000) end
  -- Who wants it whole waits for the last one.
  local way = count == permits and call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
    or call('ZRANGEBYSCORE', key, 0, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return {goesOn and 0 or way[2] and way[2] - now or -1, way[1] or '', stays == '1' and call('ZRANK', queue, place) or 0}
end)
