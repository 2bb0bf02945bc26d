-- What the scripts of locks share: answers for each of the locks of a request, and messages to those who wait.
-- A message makes a waiter ask and never grants anything: it also reaches inboxes that are still open at a server that was the master before.
-- Message: owner, key; a line each. A third line says after how many ms to ask; without it the owner is offered the key now.
-- A queue is a sorted set of places by microseconds, 2^52 later for rank 1. A place: owner, inbox ('': none), ms that an offer lasts, and what
-- the kind of lock adds; a line each.
local call, match = redis.call, string.match
local PLACE_OF = '^([^\n]*)\n([^\n]*)\n'
-- Waiters that are found gone in a row: the server does nothing else meanwhile.
local MOST_GONE = 1000
-- Places among which another process is looked for.
local MOST_NEXT = 100

-- Adds the answers that are missing. One answer is returned by itself, several as a list. An error is that key's own, for what was done for others is
-- done; but where nothing was, anything but a wrong type concerns the connection, such as that of a demoted server.
local function answerAll(replies, count, answer)
  for i = #replies + 1, count do
    local done, reply = pcall(answer, i)
    if not done or type(reply) == 'table' and reply.err then
      local problem = type(reply) == 'table' and reply.err or reply
      reply = redis.error_reply(match(problem, '%u+ .*') or problem)
      if i == 1 and not string.find(problem, 'WRONGTYPE') then return reply end
    end
    replies[i] = reply
  end
  return count == 1 and replies[1] or replies
end

-- Not by the count of PUBLISH, which includes those who listen to a pattern. A node of a Cluster knows only its own listeners.
local function isGone(inbox)
  return inbox ~= '' and not match(inbox, ':inbox:cluster:') and redis.pcall('PUBSUB', 'NUMSUB', inbox)[2] == 0
end

-- The same place without its inbox: a waiter may have queued before its inbox was open.
local function deafOf(place) return (string.gsub(place, '\n[^\n]*', '\n', 1)) end
local function leave(queue, place) return call('ZREM', queue, place, deafOf(place)) end

-- Of a release: owner, ms to keep the lock, place in the queue.
local function termsOf(terms)
  local owner, keep, place = match(terms, '^([^\n]*)\n(%d+)\n(.*)')
  return owner or terms, keep or '0', place or ''
end

-- Joins the queue behind the last one of the rank, also when the server's clock went back; or where the waiter was before it had an inbox. True: it is new.
local function join(queue, place, rank, micros)
  if call('ZSCORE', queue, place) then return false end
  local since = call('ZSCORE', queue, deafOf(place))
  local last = not since and call('ZREVRANGEBYSCORE', queue, (rank + 1) * 2 ^ 52, 0, 'WITHSCORES', 'LIMIT', 0, 1)[2] or 0
  call('ZADD', queue, since or math.max(last + 1, rank * 2 ^ 52 + micros), place)
  if since then call('ZREM', queue, deafOf(place)) end
  return not since
end

-- A client without the right to publish gives locks back all the same.
local function tell(inbox, owner, key, ms)
  if inbox ~= '' then redis.pcall('PUBLISH', inbox, owner .. '\n' .. key .. (ms and '\n' .. ms or '')) end
end

-- After so many that are gone, or are of one process, the last one is the likeliest to be there.
local function tellLast(queue, key, ms)
  local owner, inbox = match(call('ZRANGE', queue, -1, -1)[1] or '', PLACE_OF)
  if owner then tell(inbox, owner, key, ms) end
end

-- Tells each of the processes that come next when to ask: by then an offer to one that hangs has ended.
local function tellNext(queue, key, told, ms)
  local done, waiting, others = {[told] = true}, 0, false
  for from = 0, 8, 8 do
    -- The rest only where one process has all of the first places.
    if from > 0 and (others or waiting < 8) then break end
    for _, place in ipairs(call('ZRANGE', queue, from, from == 0 and 7 or MOST_NEXT - 1)) do
      local owner, inbox = match(place, PLACE_OF)
      waiting = waiting + 1
      if owner and not done[inbox] then
        done[inbox], others = true, true
        tell(inbox, owner, key, ms)
      end
    end
  end
  if waiting == MOST_NEXT and not others then tellLast(queue, key, ms) end
end
