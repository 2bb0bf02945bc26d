-- Looks at keys, for operators. Changes nothing. Behind ../prelude.lua.
-- KEYS  for each: lock, fence, queue
-- Reply for each: {ms now, type, ms left (-1: without end, -2: nothing there), last token ('': none), what is there, how many wait, the first places
--       and their scores, their inboxes and how many listen to each (-1: unknown)}, or an error
--       What is there: of a string {value ('': a long one)}; of a lock that several hold {kind and permits, how many hold it, then for each of the
--       first: owner, when its lease ends, permits}; of a latch {count, how many wait}; else {}
local MOST = 100
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- The whole of a reply, or nothing where the key is of another type.
local function known(reply, nothing) return (type(reply) ~= 'table' or not reply.err) and reply or nothing end

local function sharersOf(key)
  local name, minus = unpack(call('ZRANGE', key, 0, 0, 'WITHSCORES'))
  local kind = tonumber(minus) < 0 and match(name, '^(.*) %d+$')
  if kind ~= 'semaphore' and kind ~= 'read/write lock' then return {} end
  local reply = {name, call('ZCOUNT', key, '(' .. now, '+inf')}
  local holders = call('ZRANGEBYSCORE', key, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, MOST)
  for i = 1, #holders, 2 do
    local last = #reply
    reply[last + 1], reply[last + 2], reply[last + 3] = holders[i], holders[i + 1], -(call('ZSCORE', key, 'permits:' .. holders[i]) or -1)
  end
  return reply
end

local function latchOf(key)
  local count, waiters = call('HGET', key, 'count'), 0
  if not count or call('HEXISTS', key, 'latch') == 0 then return {} end
  for _, field in ipairs(call('HKEYS', key)) do
    if string.find(field, '^waiter:') then waiters = waiters + 1 end
  end
  return {count, waiters}
end

local readers = {
  string = function(key) return {call('STRLEN', key) < 1000 and call('GET', key) or ''} end,
  zset = sharersOf,
  hash = latchOf,
}

return answerAll({}, #KEYS / 3, function(i)
  local key, fence, queue = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]
  local kind = call('TYPE', key).ok
  local read = readers[kind]
  local places = known(redis.pcall('ZRANGE', queue, 0, MOST - 1, 'WITHSCORES'), {})
  local done, inboxes = {}, {}
  for j = 1, #places, 2 do
    local inbox = match(places[j], '^[^\n]*\n([^\n]*)') or ''
    -- A node of a Cluster knows only its own listeners.
    if inbox ~= '' and not done[inbox] and not match(inbox, ':inbox:cluster:') then
      done[inbox] = true
      inboxes[#inboxes + 1], inboxes[#inboxes + 2] = inbox, known(redis.pcall('PUBSUB', 'NUMSUB', inbox), {'', -1})[2]
    end
  end
  local token = known(redis.pcall('GET', fence), false) or ''
  local waiting = known(redis.pcall('ZCARD', queue), 0)
  return {now, kind, call('PTTL', key), token, read and read(key) or {}, waiting, places, inboxes}
end)
