-- What is at a key, for look.lua, by its type. Behind ../prelude.lua.
--   string {value ('': a long one)}
--   zset   a lock that several hold: {kind and permits, how many hold it, then for each of the first: owner, when its lease ends, permits}
--   hash   a latch: {count, how many wait}
-- {}: no lock of ours.
local MOST = 100
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local readers = {}
function readers.string(key) return {call('STRLEN', key) < 1000 and call('GET', key) or ''} end

function readers.zset(key)
  local name, minus = unpack(call('ZRANGE', key, 0, 0, 'WITHSCORES'))
  local kind = tonumber(minus) < 0 and match(name, '^(.*) %d+$')
  if kind ~= 'semaphore' and kind ~= 'read/write lock' then return {} end
  local reply = {name, call('ZCOUNT', key, '(' .. now, '+inf')}
  local holders = call('ZRANGEBYSCORE', key, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, MOST)
  for i = 1, #holders, 2 do
    local permits = -(call('ZSCORE', key, 'permits:' .. holders[i]) or -1)
    for _, part in ipairs({holders[i], holders[i + 1], permits}) do reply[#reply + 1] = part end
  end
  return reply
end

function readers.hash(key)
  local count, waiters = call('HGET', key, 'count'), 0
  if not count or call('HEXISTS', key, 'latch') == 0 then return {} end
  for _, field in ipairs(call('HKEYS', key)) do waiters = waiters + (match(field, '^waiter:') and 1 or 0) end
  return {count, waiters}
end
