-- The first part of acquire.lua: takes locks that are free, where nothing more is asked for than one token, also one that is no smaller than a floor.
-- It makes no function: that would double its time.
-- From the first other one on, the rest of acquire.lua answers.
local ask, replies, now = redis.pcall, {}
for i = 1, #KEYS / 3 do
  local lock, fence, ttl, floor = KEYS[3 * i - 2], KEYS[3 * i - 1], ARGV[2 * i]
  if not tonumber(ttl) then
    ttl, floor = string.match(ttl, '^(%d+)\n1\n(%d+)\n\n$')
    -- The fence outlasts the lease twice.
    if not ttl or 2 * ttl - FENCE_TIMEOUT > 0 then break end
  end
  if ask('EXISTS', lock, KEYS[3 * i]) ~= 0 then break end
  if not now then
    local time = ask('TIME')
    now = string.format('%s%06d', time[1], time[2])
  end
  local token = now
  if floor then
    if #floor ~= #now then break end
    if floor > now then token = floor end
  end
  local last = ask('SET', fence, token, 'PX', FENCE_TIMEOUT, 'GET')
  -- An error, or anything but a smaller token of the same length: that takes a closer look.
  if last and (#last ~= #token or last >= token) then
    if type(last) == 'string' then ask('SET', fence, last, 'KEEPTTL') end
    break
  end
  redis.call('SET', lock, ARGV[2 * i - 1], 'PX', ttl)
  replies[i] = tonumber(token)
end
if #replies == #KEYS / 3 then return replies[2] and replies or replies[1] end
