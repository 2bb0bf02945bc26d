-- What comes before acquire.lua and release.lua, with ../prelude.lua and ../tokens.lua.
-- A lock is a sorted set, which expires with the last lease. A semaphore of 10 permits, of which "b" has three and "a" one:
--   > ZRANGE key 0 -1 WITHSCORES
--   semaphore 10   -5               kind of lock, and its permits: minus one more than are taken, so that it is always the first
--   permits:b      -3               minus the permits of an owner that has several
--   a              1763812345000    when the lease of "a" ends, ms
--   b              1763812349000    when the lease of "b" ends, ms
-- (All in one key expires, or is evicted, at once; a hash beside it would cost 8 % more, measured.) A place goes on with the permits and the kind of lock that are waited for, such as '3 semaphore', and ends with
-- the keys that its call chain holds, a line each.
local PLACE = '^([^\n]*)\n([^\n]*)\n(%d+)\n(%d+) ([^\n]+)'

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

-- Offers what is free to the first waiters, to each for a moment: it confirms by asking again. The asker has it at once. Who does not fit
-- holds up those behind, unless it is gone. There is a limit to what is done at a time: the next confirmation goes on; `true`: there will be none.
local function serve(lock, queue, asker, ttl)
  local offers, shortest, told = 0, nil, nil
  for _ = 1, MOST_GONE do
    local place = call('ZRANGE', queue, 0, 0)[1] or ''
    local owner, inbox, ms, permits = match(place, PLACE)
    local fits = owner and lock.taken + permits <= lock.permits
    if not owner or offers == 256 or not fits and (owner == asker or lock.taken >= lock.permits or not isGone(inbox)) then
      if offers > 0 then tellNext(queue, lock.key, told, shortest) end
      return false
    end
    call('ZREM', queue, place)
    if fits and not lock.new[owner] and not call('ZSCORE', lock.key, owner) then
      if owner == asker then
        hold(lock, owner, permits, ttl)
      elseif not isGone(inbox) then
        hold(lock, owner, permits, ms)
        tell(inbox, owner, lock.key)
        offers, shortest, told = offers + 1, math.min(shortest or ms, ms), inbox
      end
    end
  end
  tellLast(queue, lock.key, 0)
  return true
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

-- What kind of lock the key is, if any, and its first member.
local function kindOf(key, queue)
  local first = redis.pcall('ZRANGE', key, 0, 0, 'WITHSCORES')
  if first.err and redis.pcall('HEXISTS', key, 'latch') == 1 then return 'count-down latch' end
  if first.err then return type(redis.pcall('GET', key)) == 'string' and 'mutex' or error(first.err) end
  if first[1] then return first[2] + 0 < 0 and match(first[1], '^(.*) %d+$') or 'data', first[1], first[2] end
  local place = call('ZRANGE', queue, 0, 0)[1]
  return place and match(place, PLACE_OF) and (select(5, match(place, PLACE)) or 'mutex')
end
