// As in contract.mjs: what a process may pass on by itself, and for how long.
const memory = 'test/stores/memory.contract.spec.ts';
const redis = 'test/stores/redis.contract.spec.ts';
const turns = 'lib/core/turns.ts';
const lua = 'lib/stores/redis/lua/mutex/extend.lua';
const extending = 'the driver extends a tenure';

export const TURNS_MUTANTS = [
  {
    guarantee: 'G8',
    what: 'redis: more turns are given while others queue',
    file: lua,
    from: "if call('EXISTS', KEYS[3]) == 1 then return '' end",
    to: '',
    spec: redis,
    test: extending,
  },
  {
    guarantee: 'G8',
    what: 'memory: more turns are given while others queue',
    file: 'lib/stores/memory/mutex.driver.ts',
    from: "if (this.queues.has(key)) return Promise.resolve('wanted');",
    to: '',
    spec: memory,
    test: extending,
  },
  {
    guarantee: 'G5',
    what: 'redis: a tenure is extended by whoever asks',
    file: lua,
    from: 'if holder ~= ARGV[1] then return false end',
    to: 'if not holder then return false end',
    spec: redis,
    test: extending,
  },
  {
    guarantee: 'G6',
    what: 'redis: a late extension brings the end nearer',
    file: lua,
    from: "if call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then call('PEXPIRE', KEYS[1], ARGV[2]) end",
    to: "call('PEXPIRE', KEYS[1], ARGV[2])",
    spec: redis,
    test: extending,
  },
  {
    guarantee: 'G2',
    what: 'redis: an extension reserves one token only',
    file: lua,
    from: 'token + ARGV[3] - 1',
    to: 'token',
    spec: redis,
    test: extending,
  },
  {
    guarantee: 'G2',
    what: 'redis: an extension gives tokens that were reserved before',
    file: lua,
    from: "if last and last + 1 > tonumber(token) then token = string.format('%.0f', last + 1) end",
    to: '',
    spec: redis,
    test: extending,
  },
  {
    guarantee: 'G8',
    what: 'turns are never extended',
    file: turns,
    from: 'setImmediate(() => void this.ask(tenure));',
    to: 'void this.ask;',
    spec: redis,
    test: 'asks for more turns before',
  },
  {
    guarantee: 'G8',
    what: 'turns that end by their time are not extended',
    file: turns,
    from: '(this.left > handOvers / 4 && this.endsAt - tenure.grantedAt > time / 4)',
    to: '(this.left > handOvers / 4 && time > 0)',
    spec: memory,
    test: 'over by their time',
  },
  {
    guarantee: 'G8',
    what: 'turns count from when the answer comes',
    file: turns,
    from: 'this.left += handOvers - left;',
    to: 'this.left = handOvers; void left;',
    spec: memory,
    test: 'counts the turns of an answer',
  },
  {
    guarantee: 'G3',
    what: 'an extension that finds the tenure lost tells nobody',
    file: turns,
    from: "tenure.settleRenewal(reply === 'lost' ? 'lost' : 'renewed', sentAt);",
    to: '',
    spec: memory,
    test: 'told that the tenure is lost',
  },
];
