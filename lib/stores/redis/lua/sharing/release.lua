-- Gives shares back: to the waiters that they suffice for, which are offered them. Safe to repeat after a minHold. Behind offers.lua.
-- KEYS  for each: lock, queue
-- ARGV  for each: owner, or, a line each: owner, ms to keep the share taken yet, entry in the queue to leave too ('': none)
-- Reply for each: 1 released, 0 not this owner's, or an error
return answerAll({}, #KEYS / 2, function(i)
  local key, queue, owner, keep, entry = KEYS[2 * i - 1], KEYS[2 * i], termsOf(ARGV[i])
  if entry ~= '' then leave(queue, entry) end
  local first = redis.pcall('ZRANGE', key, 0, 0, 'WITHSCORES')
  if first.err and not string.find(first.err, 'WRONGTYPE') then return first end
  local name, minus = unpack(first)
  local permits = name and minus + 0 < 0 and match(name, '^.* (%d+)$')
  -- A key that is something else is not this owner's.
  if not permits then return 0 end
  local lock, kept = open(key, minus, permits), 'kept:' .. owner
  local isOurs = call('ZSCORE', key, owner)
  if isOurs then
    local share = drop(lock, owner)
    if keep ~= '0' then
      -- By another name, so that no late renewal can make the stay longer.
      if call('ZSCORE', key, kept) then drop(lock, kept) end
      hold(lock, kept, share, keep)
    end
  end
  closing(lock, name, function()
    serve(lock, queue)
    -- Waiters know of a later end only.
    if isOurs and keep ~= '0' then tellNext(queue, key, '', keep) end
  end)
  return (isOurs or call('ZSCORE', key, kept)) and 1 or 0
end)
