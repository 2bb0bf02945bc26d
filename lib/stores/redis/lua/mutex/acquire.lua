-- Takes locks, refreshes those that are their owners' already, or says who has them. Safe to repeat. Behind acquire-free.lua, ../tokens.lua and offer.lua.
-- KEYS  for each: lock, fence, queue
-- ARGV  for each: owner; ttl ms, or, a line each: ttl, tokens to reserve, the smallest that the first may be, owner that gives the lock up in this
--       step ('': none), entry in the queue ('': none)
-- Reply for each: the first token, or {ms left (-1: without end), holder ('': unknown), waiters ahead}, or an error. Where an owner gives the lock
--       up: {1 it was its own, 0 it was not, the reply}

local function holderOf(lock)
  local holder = redis.pcall('GET', lock)
  if type(holder) ~= 'table' then return holder end
  -- Another kind of lock has a name.
  local other = redis.pcall('ZRANGE', lock, 0, 0)[1] or redis.pcall('HEXISTS', lock, 'latch') == 1 and 'count-down latch'
  error(other and 'WRONGTYPE mutex: ' .. other or holder.err)
end

return answerAll(replies, #KEYS / 3, function(i)
  local lock, fence, queue = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]
  local owner, terms = ARGV[2 * i - 1], ARGV[2 * i]
  local ttl, tokens, floor, yields, entry = match(tonumber(terms) and terms .. '\n1\n0\n\n' or terms, '^(%d+)\n(%d+)\n(%d+)\n([^\n]*)\n(.*)')
  local holder, reply = holderOf(lock)
  local wasYielded = yields ~= '' and holder == yields
  if holder == owner then
    -- Never nearer: a request that comes late must not shorten the lease. An offer does not last longer than its waiter's first lease would.
    ttl = math.max(ttl, call('PTTL', lock))
  elseif wasYielded or not holder and call('EXISTS', queue) == 1 then
    holder = offer(lock, queue, owner)
    if holder == '' then call('DEL', lock) end
  end
  if holder and holder ~= owner then
    if entry ~= '' then
      join(queue, entry, 0, micros)
      -- A waiter asks every half minute or more often. Entries that did not ask for a minute are removed.
      call('PEXPIRE', queue, 60000)
    end
    reply = {holder == '' and 0 or call('PTTL', lock), holder, entry ~= '' and call('ZRANK', queue, entry) or 0}
  else
    reply = reserve(fence, tokens, floor, ttl)
    call('SET', lock, owner, 'PX', ttl)
  end
  return yields ~= '' and {wasYielded and 1 or 0, reply} or reply
end)
