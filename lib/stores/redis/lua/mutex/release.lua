-- Gives locks back: to the first waiter, which is offered it, or to nobody. Safe to repeat after a minHold. Behind offer.lua.
-- KEYS  for each: lock, queue
-- ARGV  1 as in inbox.lua; then for each: owner, ms to keep the lock taken yet, place in the queue to leave too ('': none; see offer.lua)
-- Reply for each: 1 released, 0 not this owner's, or an error
local function release(lock, queue, owner, keep, place)
  -- It may be there yet as one without an inbox.
  if place ~= '' then call('ZREM', queue, place, (string.gsub(place, '\n[^\n]*', '\n', 1))) end
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
end

local replies = {}
for i = 1, #KEYS / 2 do
  local done, reply = pcall(release, KEYS[2 * i - 1], KEYS[2 * i], unpack(ARGV, 3 * i - 1, 3 * i + 1))
  if not done or type(reply) == 'table' then
    local problem = type(reply) == 'table' and reply.err or reply
    reply = redis.error_reply(match(problem, '%u+ .*') or problem)
    -- As in acquire.lua.
    if not string.find(problem, 'WRONGTYPE') then return reply end
  end
  replies[i] = reply
end
return replies
