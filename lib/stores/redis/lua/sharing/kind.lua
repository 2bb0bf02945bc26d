-- What kind of lock the key is, if any, and its first member. Behind offers.lua.
local function kindOf(key, queue)
  local first = redis.pcall('ZRANGE', key, 0, 0, 'WITHSCORES')
  if first.err and redis.pcall('HEXISTS', key, 'latch') == 1 then return 'count-down latch' end
  if first.err then return type(redis.pcall('GET', key)) == 'string' and 'mutex' or error(first.err) end
  if first[1] then return first[2] + 0 < 0 and match(first[1], '^(.*) %d+$') or 'data', first[1], first[2] end
  local entry = call('ZRANGE', queue, 0, 0)[1]
  return entry and match(entry, ENTRY_OF) and (select(5, match(entry, ENTRY)) or 'mutex')
end
