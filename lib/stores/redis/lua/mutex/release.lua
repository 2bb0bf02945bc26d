-- Gives locks back: to the first waiter, which is offered it, or to nobody. Safe to repeat after a minHold. Behind release-unqueued.lua and offer.lua.
-- KEYS  for each: lock, queue
-- ARGV  for each: owner, or, a line each: owner, ms to keep the lock taken yet, entry in the queue to leave too ('': none)
-- Reply for each: 1 released, 0 not this owner's, or an error
return answerAll(replies, #KEYS / 2, function(i)
  local lock, queue, owner, keep, entry = KEYS[2 * i - 1], KEYS[2 * i], termsOf(ARGV[i])
  if entry ~= '' then leave(queue, entry) end
  local holder = redis.pcall('GET', lock)
  -- A key of another type is not this owner's. Any other failure tells nothing.
  if type(holder) == 'table' then return string.find(holder.err, 'WRONGTYPE') and 0 or holder end
  if holder ~= owner then return holder == 'kept:' .. owner and 1 or 0 end
  if keep ~= '0' then
    -- First what needs no memory: a full server refuses to begin with the rest.
    call('PEXPIRE', lock, keep)
    -- Another value, so that no late renewal can make the stay longer.
    call('SET', lock, 'kept:' .. owner, 'PX', keep)
    -- Waiters know of a later end only.
    tellNext(queue, lock, '', keep)
  elseif (offer(lock, queue) or '') == '' then
    call('DEL', lock)
  end
  return 1
end)
