-- What comes before acquire.lua and release.lua, with ../prelude.lua.
-- A place ends with the keys that its call chain holds, a line each.
local PLACE = '^([^\n]*)\n([^\n]*)\n(%d+)'

-- Offers the free lock to the first waiter that is not known to be gone: for a moment, to confirm by asking again. Returns the owner that has it;
-- '': so many are gone that the next request goes on; nil: nobody waits, or the asker comes first.
local function offer(lock, queue, asker)
  for _ = 1, MOST_GONE do
    local place = call('ZPOPMIN', queue)[1]
    if not place then return nil end
    local owner, inbox, ms = match(place, PLACE)
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
