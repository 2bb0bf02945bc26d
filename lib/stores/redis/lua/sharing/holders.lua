-- The holders of a lock, for acquire.lua and release.lua. Behind ../tokens.lua, ../prelude.lua and ../queue.lua.
-- A lock is a sorted set, which expires with the last lease. A semaphore of 10 permits, of which "b" has three and "a" one:
--   > ZRANGE key 0 -1 WITHSCORES
--   semaphore 10   -5               kind of lock, and its permits: minus one more than are taken, so that it is always the first
--   permits:b      -3               minus the permits of an owner that has several
--   a              1763812345000    when the lease of "a" ends, ms
--   b              1763812349000    when the lease of "b" ends, ms
-- An entry in the queue goes on with the permits and the kind of lock that are waited for, such as '3 semaphore', and ends with the keys that its call
-- chain holds, a line each.
local ENTRY = '^([^\n]*)\n([^\n]*)\n(%d+)\n(%d+) ([^\n]+)'

-- The permits of an owner that holds it.
local function permitsOf(lock, holder) return lock.taken == 1 and 1 or -(call('ZSCORE', lock.key, 'permits:' .. holder) or -1) end
-- To be written down by `close`.
local function hold(lock, holder, permits, ms)
  local news, last = lock.news, #lock.news
  lock.taken, lock.new[holder], lock.isChanged = lock.taken + permits, true, true
  news[last + 1], news[last + 2] = now + ms, holder
  if permits + 0 > 1 then news[last + 3], news[last + 4] = -permits, 'permits:' .. holder end
end

local function drop(lock, holder)
  local permits = permitsOf(lock, holder)
  lock.taken, lock.isChanged = lock.taken - permits, true
  call('ZREM', lock.key, holder, 'permits:' .. holder)
  return permits
end

local function open(key, minus, permits)
  local lock = {key = key, taken = -1 - minus, permits = permits + 0, new = {}, news = {}}
  for _, holder in ipairs(lock.taken > 0 and call('ZRANGEBYSCORE', key, 0, now) or {}) do drop(lock, holder) end
  return lock
end

local function close(lock, name)
  if lock.taken == 0 then return call('DEL', lock.key) end
  call('ZADD', lock.key, -1 - lock.taken, name, unpack(lock.news))
  call('PEXPIREAT', lock.key, tonumber(call('ZREVRANGE', lock.key, 0, 0, 'WITHSCORES')[2]))
end

-- Does this and writes the holders down, also where it fails: a queue that has become empty in a slot that moves may not be looked at any more.
local function closing(lock, name, change)
  local done, problem = pcall(change)
  -- A full server refuses to begin with this, and nothing has changed.
  if lock.isChanged then close(lock, name) end
  if not done then error(problem, 0) end
end
