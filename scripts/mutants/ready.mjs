// As in contract.mjs: a process that yields is granted its next turn by a message.
const acquire = 'lib/core/acquire.ts';
const lua = 'lib/stores/redis/lua/mutex/acquire.lua';
const spec = 'test/stores/redis/ready.spec.ts';
const model = { spec: 'test/stores/redis/model.spec.ts', test: 'do as the model does' };

export const READY_MUTANTS = [
  {
    guarantee: 'G2',
    what: 'an old grant counts for one that has asked again',
    file: acquire,
    from: '    this.joinedFor = undefined;\n',
    to: '',
    spec,
    test: 'that may be old',
  },
  {
    guarantee: 'G3',
    what: 'a grant counts however little of it is left',
    file: acquire,
    from: ' || now() >= this.sentAt + validity(wish.ttl) / 2',
    to: '',
    spec,
    test: 'less than half of its length',
  },
  {
    guarantee: 'G3',
    what: 'a granted lease counts from when it is granted',
    file: acquire,
    from: 'token, sentAt: this.sentAt, isContested',
    to: 'token, sentAt: isContested ? now() : this.sentAt, isContested',
    spec,
    test: 'counts its validity from when it yielded',
  },
  {
    guarantee: 'G1',
    what: 'a grant counts for a minHold',
    file: acquire,
    from: 'wish?.minHold !== 0',
    to: 'wish === undefined',
    spec,
    test: 'minHold',
  },
  {
    guarantee: 'G8',
    what: 'who yielded long ago is granted the key unasked',
    file: lua,
    from: 'math.abs(micros - since) < ready * 1000',
    to: 'true',
    spec,
    test: 'it may be gone',
  },
  {
    guarantee: 'G8',
    what: 'every waiter is granted the key unasked',
    file: 'lib/stores/redis/mutex.driver.ts',
    from: "yields === '' ? 0 : tokens",
    to: 'tokens',
    spec,
    test: 'one that comes anew does not',
  },
  {
    guarantee: 'G2',
    what: 'a grant reserves no tokens',
    file: lua,
    from: "owner .. '\\n' .. reserve(fence, tokens)",
    to: "owner .. '\\n' .. clock",
    ...model,
  },
  {
    guarantee: 'G8',
    what: 'a grant that nobody is known to hear lasts for a keyTimeout',
    file: lua,
    from: 'isReady and (tonumber(heard) or 0) > 0 and ttl or ms',
    to: 'isReady and ttl or ms',
    ...model,
  },
  {
    guarantee: 'G8',
    what: 'who is ready is only offered the key',
    file: lua,
    from: "local isReady = ready ~= '' and",
    to: 'local isReady = false and',
    spec,
    test: 'by the message',
  },
];
