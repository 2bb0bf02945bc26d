-- What is free goes to waiters. Behind holders.lua.

-- Offers what is free to the first waiters, to each for a moment: it confirms by asking again. The asker has it at once. A waiter that does not fit
-- holds up those behind, unless it is gone. There is a limit to what is done at a time: the next confirmation goes on; `true`: there will be none.
local function serve(lock, queue, asker, ttl)
  local offers, shortest, told = 0, nil, nil
  for _ = 1, MOST_GONE do
    local entry = call('ZRANGE', queue, 0, 0)[1] or ''
    local owner, inbox, ms, permits = match(entry, ENTRY)
    local fits = owner and lock.taken + permits <= lock.permits
    if not owner or offers == 256 or not fits and (owner == asker or lock.taken >= lock.permits or not isGone(inbox)) then
      if offers > 0 then tellNext(queue, lock.key, told, shortest) end
      return false
    end
    call('ZREM', queue, entry)
    if fits and not lock.new[owner] and not call('ZSCORE', lock.key, owner) then
      if owner == asker then
        hold(lock, owner, permits, ttl)
      elseif not isGone(inbox) then
        hold(lock, owner, permits, ms)
        tell(inbox, owner, lock.key)
        offers, shortest, told = offers + 1, math.min(shortest or ms, ms), inbox
      end
    end
  end
  tellLast(queue, lock.key, 0)
  return true
end
