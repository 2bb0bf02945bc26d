-- What the scripts of locks share.
local call, match = redis.call, string.match

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

-- Not by the count of PUBLISH, which includes listeners to a pattern. A node of a Cluster knows only its own listeners.
local function isGone(inbox)
  return inbox ~= '' and not match(inbox, ':inbox:cluster:') and redis.pcall('PUBSUB', 'NUMSUB', inbox)[2] == 0
end

-- The terms of a release: owner, ms to keep the lock, entry in the queue.
local function termsOf(terms)
  local owner, keep, entry = match(terms, '^([^\n]*)\n(%d+)\n(.*)')
  return owner or terms, keep or '0', entry or ''
end
