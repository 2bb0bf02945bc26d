-- Takes shares of locks, refreshes those that are their owners' already, or says who has them. Safe to repeat. Behind kind.lua.
-- KEYS  for each: lock, fence, queue
-- ARGV  for each: owner, ttl ms, tokens to reserve (0: the last one is asked for), the smallest that the first may be,
--       permits in all, entry in the queue, '1' to stay there, rank, owner whose hold is not in the way ('': none)
-- Reply for each: the first token, or {ms left (-1: unknown), a holder ('': unknown), waiters ahead}, or an error
-- Cases, the first that is true counts:
--   the owner holds it already                                      its end moves later
--   enough permits are free, and nobody queues or `beside` holds    it is granted
--   others queue                                                    it joins them, and the queue is served, which may grant it
--   it is to stay                                                   it makes the queue
--   else                                                            it is refused
-- One that joins and is not to stay leaves the queue at the end, and the queue is served without it.
return answerAll({}, #KEYS / 3, function(i)
  local key, fence, queue = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]
  local owner, ttl, tokens, floor, permits, entry, stays, rank, beside = unpack(ARGV, 9 * i - 8, 9 * i)
  local _, _, _, count, kind = match(entry, ENTRY)
  local other, first, minus = kindOf(key, queue)
  if other and other ~= kind then error('WRONGTYPE ' .. kind .. ': ' .. other) end
  local name, lock, isQueue = kind .. ' ' .. permits, open(key, minus or -1, permits), call('EXISTS', queue) == 1
  if first and first ~= name then call('ZREM', key, first) end
  local held = lock.taken > 0 and call('ZSCORE', key, owner)
  local own = beside ~= '' and call('ZSCORE', key, beside) and permitsOf(lock, beside) or 0
  local isGuest, goesOn = false, false
  lock.isChanged = true
  closing(lock, name, function()
    if held then
      call('ZADD', key, math.max(held, now + ttl), owner)
    elseif (own > 0 or not isQueue) and lock.taken - own + count <= lock.permits then
      hold(lock, owner, count, ttl)
    elseif isQueue or stays == '1' then
      isGuest = join(queue, entry, rank, micros) and stays ~= '1'
    end
    goesOn = isQueue and serve(lock, queue, owner, ttl)
    -- A caller that does not stay holds up nobody.
    if isGuest and call('ZREM', queue, entry) == 1 then serve(lock, queue) end
  end)
  if held or lock.new[owner] then
    if isQueue then leave(queue, entry) end
    return reserve(fence, tokens, floor, ttl)
  end
  -- A waiter asks every half minute or more often. Entries that did not ask for a minute are removed.
  if stays == '1' then call('PEXPIRE', queue, 60000) end
  -- A caller that wants it whole waits for the last holder.
  local way = count == permits and call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
    or call('ZRANGEBYSCORE', key, 0, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return {goesOn and 0 or way[2] and way[2] - now or -1, way[1] or '', stays == '1' and call('ZRANK', queue, entry) or 0}
end)
