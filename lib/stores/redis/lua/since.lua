-- For how long the server has surely forgotten nothing: since this process of it was asked first. A process that was started again, also from an old
-- snapshot, has another run_id, and so has a replica that was promoted.
-- KEYS  1 `<run_id> <milliseconds>`: the process that was asked, and when
-- Reply milliseconds
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
if not run then return redis.error_reply('ERR INFO has no run_id') end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known, since = string.match(redis.call('GET', KEYS[1]) or '', '^(%w+) (%d+)$')
-- A clock that was set back tells nothing of the time before.
if known ~= run or tonumber(since) > now then
  since = now
  redis.call('SET', KEYS[1], string.format('%s %.0f', run, now))
end
return now - since
