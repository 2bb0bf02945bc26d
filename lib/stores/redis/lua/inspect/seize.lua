-- Takes a mutex away from its owner: for the first waiter, which is offered it, for nobody, or for a while. Behind ../mutex/offer.lua.
-- KEYS  1 lock, 2 fence, 3 queue
-- ARGV  1 owner, 2 last token ('': any), 3 ms to keep the lock taken
-- Reply 1 taken away, 0 the owner or the token is another one
local lock, fence, queue = KEYS[1], KEYS[2], KEYS[3]
local owner, token, keep = ARGV[1], ARGV[2], ARGV[3]
local holder = call('GET', lock)
if holder ~= owner and holder ~= 'kept:' .. owner or token ~= '' and call('GET', fence) ~= token then return 0 end
if keep ~= '0' then
  -- First what needs no memory, as in release.lua.
  call('PEXPIRE', lock, keep)
  call('SET', lock, 'kept:' .. owner, 'PX', keep)
  tellNext(queue, lock, '', keep)
elseif (offer(lock, queue) or '') == '' then
  call('DEL', lock)
end
return 1
