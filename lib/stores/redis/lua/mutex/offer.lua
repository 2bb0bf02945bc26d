-- Offers of a mutex, for acquire.lua and release.lua. Behind ../prelude.lua and ../queue.lua.
-- An entry ends with the keys that its call chain holds, a line each.
local ENTRY = '^([^\n]*)\n([^\n]*)\n(%d+)'

-- Offers the free lock to the first waiter that is not known to be gone: for a moment, to confirm by asking again. Returns the owner that has it;
-- '': so many are gone that the next request goes on; nil: nobody waits, or the asker comes first.
local function offer(lock, queue, asker)
  for _ = 1, MOST_GONE do
    local entry = call('ZPOPMIN', queue)[1]
    if not entry then return nil end
    local owner, inbox, ms = match(entry, ENTRY)
    if owner and owner == asker then return nil end
    if owner and not isGone(inbox) then
      call('SET', lock, owner, 'PX', ms)
      tell(inbox, owner, lock)
      tellNext(queue, lock, inbox, ms)
      return owner
    end
  end
  tellLast(queue, lock, 0)
  return ''
end
