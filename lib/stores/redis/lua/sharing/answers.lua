-- Behind holders.lua: answers each of the locks that a request is about by itself.
local function answerAll(count, answer)
  local replies = {}
  for i = 1, count do
    local done, reply = pcall(answer, i)
    if not done then
      local problem = type(reply) == 'table' and reply.err or reply
      reply = redis.error_reply(match(problem, '%u+ .*') or problem)
      -- As in mutex/acquire.lua.
      if not string.find(problem, 'WRONGTYPE') then return reply end
    end
    replies[i] = reply
  end
  return replies
end
