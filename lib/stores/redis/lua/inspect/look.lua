-- Looks at keys, for operators. Changes nothing. Behind bodies.lua.
-- KEYS  for each: lock, fence, queue
-- Reply for each: {ms now, type, ms left (-1: without end, -2: nothing there), last token ('': none), what is there, how many wait, the first entries
--       and their scores, their inboxes and how many listen to each (-1: unknown)}, or an error

-- The reply, or nothing where the key is of another type.
local function known(nothing, ...)
  local reply = redis.pcall(...)
  return (type(reply) ~= 'table' or not reply.err) and reply or nothing
end

return answerAll({}, #KEYS / 3, function(i)
  local key, fence, queue = unpack(KEYS, 3 * i - 2, 3 * i)
  local kind = call('TYPE', key).ok
  local entries, done, inboxes = known({}, 'ZRANGE', queue, 0, MOST - 1, 'WITHSCORES'), {}, {}
  for j = 1, #entries, 2 do
    local inbox = match(entries[j], '^[^\n]*\n([^\n]*)') or ''
    -- A node of a Cluster knows only its own listeners.
    if inbox ~= '' and not done[inbox] and not match(inbox, ':inbox:cluster:') then
      done[inbox] = true
      inboxes[#inboxes + 1], inboxes[#inboxes + 2] = inbox, known({'', -1}, 'PUBSUB', 'NUMSUB', inbox)[2]
    end
  end
  local token, waiting, body = known(false, 'GET', fence) or '', known(0, 'ZCARD', queue), readers[kind] and readers[kind](key) or {}
  return {now, kind, call('PTTL', key), token, body, waiting, entries, inboxes}
end)
