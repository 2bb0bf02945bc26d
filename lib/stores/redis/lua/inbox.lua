-- How waiters are told, for the scripts of locks. A message only makes a waiter ask, and never grants anything: it also reaches inboxes that are
-- still open at a server that was the master before.
-- Message: owner, key; a line each. A third line says after how many ms to ask; without it the owner is offered the key now.
-- ARGV  1 '1' where PUBSUB NUMSUB tells who listens to an inbox
local call, match = redis.call, string.match
-- Waiters that are found gone in a row: the server does nothing else meanwhile.
local MOST_GONE = 1000

-- ms to keep the fence of a lease of so many.
local function fenceTime(ms, ttl) return string.format('%.0f', math.max(ms, 2 * ttl)) end

-- Not by the count of PUBLISH, in which whoever listens to a pattern counts too.
local function isGone(inbox)
  return ARGV[1] == '1' and inbox ~= '' and redis.pcall('PUBSUB', 'NUMSUB', inbox)[2] == 0
end

-- A client without the right to publish gives locks back all the same.
local function tell(inbox, owner, key, ms)
  if inbox ~= '' then redis.pcall('PUBLISH', inbox, owner .. '\n' .. key .. (ms and '\n' .. ms or '')) end
end

-- Of the processes that come next, each is told when to ask: by then an offer to one that hangs has ended.
local function tellNext(queue, key, told, ms)
  local done = {[told] = true}
  for _, place in ipairs(call('ZRANGE', queue, 0, 7)) do
    local owner, inbox = match(place, '^([^\n]*)\n([^\n]*)')
    if not done[inbox] then tell(inbox, owner, key, ms) end
    done[inbox] = true
  end
end

-- After so many that are gone the last one is the likeliest to be there.
local function tellLast(queue, key)
  local owner, inbox = match(call('ZRANGE', queue, -1, -1)[1] or '', '^([^\n]*)\n([^\n]*)')
  if owner then tell(inbox, owner, key, 0) end
end
