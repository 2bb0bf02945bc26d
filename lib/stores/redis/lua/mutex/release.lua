-- Gives locks back: to the first waiter, which is offered it, or to nobody. Safe to repeat after a minHold.
-- KEYS  for each: lock, queue
-- ARGV  1 '1' where PUBLISH tells how many heard it; then for each: owner, ms to keep the lock taken yet, place in the queue to
--       leave too ('': none; see acquire.lua)
-- Reply for each: 1 released, 0 not this owner's, or an error
local call = redis.call

-- As in acquire.lua.
local function offer(lock, queue)
  for _ = 1, call('ZCARD', queue) do
    local owner, inbox, ms = string.match(call('ZPOPMIN', queue)[1], '^(.-)\n(.-)\n(%d+)')
    local heard = inbox == '' or redis.pcall('PUBLISH', inbox, owner)
    if heard ~= 0 or ARGV[1] ~= '1' then
      call('SET', lock, owner, 'PX', ms)
      return owner
    end
  end
end

local function release(i)
  local lock, queue = KEYS[2 * i - 1], KEYS[2 * i]
  local owner, keep, place = ARGV[3 * i - 1], ARGV[3 * i], ARGV[3 * i + 1]
  -- It may be there yet as one without an inbox.
  if place ~= '' then call('ZREM', queue, place, (string.gsub(place, '\n[^\n]*', '\n', 1))) end
  local holder = redis.pcall('GET', lock)
  -- A key of another type is not this owner's. Any other failure tells nothing.
  if type(holder) == 'table' then return string.find(holder.err, 'WRONGTYPE') and 0 or holder end
  if holder ~= owner then return holder == 'kept:' .. owner and 1 or 0 end
  if keep ~= '0' then
    -- Another value, so that no late renewal can make the stay longer.
    call('SET', lock, 'kept:' .. owner, 'PX', keep)
    -- The first waiter knows of a later end only: it asks, and is told of this one.
    local waiter, inbox = string.match(call('ZRANGE', queue, 0, 0)[1] or '', '^(.-)\n(.-)\n')
    if inbox and inbox ~= '' then redis.pcall('PUBLISH', inbox, waiter) end
  elseif not offer(lock, queue) then
    call('DEL', lock)
  end
  return 1
end

local replies = {}
for i = 1, #KEYS / 2 do
  local done, reply = pcall(release, i)
  if not done or type(reply) == 'table' then
    local problem = type(reply) == 'table' and reply.err or reply
    reply = redis.error_reply(string.match(problem, '%u+ .*') or problem)
    -- As in acquire.lua.
    if not string.find(problem, 'WRONGTYPE') then return reply end
  end
  replies[i] = reply
end
return replies
