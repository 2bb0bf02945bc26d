-- The first part of release.lua: deletes the locks of these owners that nobody waits for. From the first other one on, the rest of release.lua answers.
local ask, replies = redis.pcall, {}
for i = 1, #ARGV do
  local lock = KEYS[2 * i - 1]
  if ask('GET', lock) ~= ARGV[i] or ask('EXISTS', KEYS[2 * i]) ~= 0 or ask('DEL', lock) ~= 1 then break end
  replies[i] = 1
end
if #replies == #ARGV then return replies[2] and replies or replies[1] end
