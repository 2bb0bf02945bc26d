-- The queue of a lock, and messages to its waiters. Behind prelude.lua.
-- A queue is a sorted set of entries by microseconds, 2^52 later for rank 1. An entry: owner, inbox ('': none), ms that an offer lasts, and what
-- the kind of lock adds; a line each.
-- A message makes a waiter ask and never grants anything: it also reaches inboxes that are still open at a server that was the master before.
-- Message: owner, key; a line each. A third line says after how many ms to ask; without it the owner is offered the key now.
local ENTRY_OF = '^([^\n]*)\n([^\n]*)\n'
-- Waiters that are found gone in a row: the server does nothing else meanwhile.
local MOST_GONE = 1000
-- Entries among which another process is looked for.
local MOST_NEXT = 100

-- The same entry without its inbox: a waiter may have queued before its inbox was open.
local function deafOf(entry) return (string.gsub(entry, '\n[^\n]*', '\n', 1)) end
local function leave(queue, entry) return call('ZREM', queue, entry, deafOf(entry)) end

-- Joins the queue behind the last one of the rank, also when the server's clock went back; or where the waiter was before it had an inbox. True: it is new.
local function join(queue, entry, rank, micros)
  if call('ZSCORE', queue, entry) then return false end
  local since = call('ZSCORE', queue, deafOf(entry))
  local last = not since and call('ZREVRANGEBYSCORE', queue, (rank + 1) * 2 ^ 52, 0, 'WITHSCORES', 'LIMIT', 0, 1)[2] or 0
  call('ZADD', queue, since or math.max(last + 1, rank * 2 ^ 52 + micros), entry)
  if since then call('ZREM', queue, deafOf(entry)) end
  return not since
end

-- A client without the right to publish gives locks back all the same.
local function tell(inbox, owner, key, ms)
  if inbox ~= '' then redis.pcall('PUBLISH', inbox, owner .. '\n' .. key .. (ms and '\n' .. ms or '')) end
end

-- After so many that are gone, or are of one process, the last one is the likeliest to be there.
local function tellLast(queue, key, ms)
  local owner, inbox = match(call('ZRANGE', queue, -1, -1)[1] or '', ENTRY_OF)
  if owner then tell(inbox, owner, key, ms) end
end

-- Tells each of the processes that come next when to ask: by then an offer to one that hangs has ended.
local function tellNext(queue, key, told, ms)
  local done, others = {[told] = true}, false
  -- The rest only where one process has all of the first entries. The last one may be of another process.
  for _, range in ipairs({{0, 7}, {8, MOST_NEXT - 1}, {-1, -1}}) do
    local entries = call('ZRANGE', queue, range[1], range[2])
    for _, entry in ipairs(entries) do
      local owner, inbox = match(entry, ENTRY_OF)
      if owner and not done[inbox] then
        done[inbox], others = true, true
        tell(inbox, owner, key, ms)
      end
    end
    if others or #entries < 8 then return end
  end
end
