// What comes from the channel of operators: anybody who may publish can send any text there.
import fc from 'fast-check';
import { passTime } from '../support/virtual-time.js';
import { Locks, type Bus } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { type Answer, answerOf, type ProcessEvents, questionOf, revokeRequestOf } from '../../lib/operate/messages.js';

const READERS = { answerOf, questionOf, revokeRequestOf };
const sent = (message: object): string => JSON.stringify({ version: 1, ...message });
const event = { number: 1, event: 'lost', at: 0, firstAt: 0, count: 1, key: 'key' };
const events = { process: 'app@host:1', from: 'id', after: 0 };
const question = { id: 'id', keys: ['key'] };

it('no text makes a reader of messages throw', () => {
  const parts = fc.anything({ withDate: true, withNullPrototype: true });
  const names = fc.constantFrom(...'id ids keys known after key owner reason by isOver entries events process at'.split(' '));
  const message = fc.dictionary(names, parts).map((fields) => {
    try {
      return sent(fields);
    } catch {
      return '{}';
    }
  });
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json(), message), (text) => {
      for (const read of Object.values(READERS)) read(text);
    }),
    { numRuns: 5_000 },
  );
});

it.each([
  ['a question about too many keys', questionOf, { id: 'id', keys: Array.from({ length: 65 }, String) }],
  ['a question with a long id', questionOf, { id: 'x'.repeat(65) }],
  ['a message of more than 64 KB', questionOf, { ...question, more: 'x'.repeat(65_536) }],
  ['a question about a long key', questionOf, { id: 'id', keys: ['x'.repeat(1_025)] }],
  ['a question that knows a text', questionOf, { ...question, known: { id: 'x' } }],
  ['an event with a date that is none', answerOf, { ...events, events: [{ ...event, at: 1e300 }] }],
] as const)('%s is left alone', (_, read, message) => {
  expect(read(sent(message))).toBeUndefined();
});

it('the longest request that an operator can make is read', () => {
  const name = 'x'.repeat(1_024);
  const request = { id: 'id', key: name, owner: name, reason: '\u0001'.repeat(4_096), by: '\u0001'.repeat(256), isOver: false };
  expect(revokeRequestOf(sent(request))).toBeDefined();
});

it('what is right is read, with its control characters written out', () => {
  expect(questionOf(sent(question))).toMatchObject(question);
  const forged = { id: 'id', key: 'key', owner: 'owner', reason: 'tidy\n2026-01-01 ERROR all is lost\u001B[31m', isOver: false };
  expect(revokeRequestOf(sent(forged))?.reason).toBe('tidy\\u000a2026-01-01 ERROR all is lost\\u001b[31m');
  expect((answerOf(sent({ ...events, events: [event] })) as ProcessEvents).events).toHaveLength(1);
});

it('a process answers any number of questions with one message in an interval', async () => {
  const store = memoryStore();
  const locks = new Locks(store, { logger: false });
  const lease = await locks.acquire('key', { keyTimeout: 3_600_000 });
  const answers: string[] = [];
  const stop = await store.bus!.listen('ops:told', (text) => void answers.push(text));
  for (let i = 0; i < 1_000; i++) await store.bus!.publish('ops', sent({ id: String(i), keys: ['key'] }));
  await passTime(1_000);
  expect(answers.length).toBeGreaterThan(0);
  expect(answers.length).toBeLessThanOrEqual(2);
  expect((answerOf(answers[0]!) as Answer).ids).toContain('0');
  stop();
  await lease.release();
  await locks.close();
});

it('what was in a message that was lost is asked for again', async () => {
  const store = memoryStore();
  let lost = 0;
  const real = store.bus!;
  const publish: Bus['publish'] = (topic, text) =>
    topic === 'ops:told' && text.includes('"events"') && lost++ === 0 ? Promise.resolve(1) : real.publish(topic, text);
  const bus = Object.assign(Object.create(real) as Bus, { publish });
  const [app, looks] = [{ ...store, bus }, store].map((each) => new Locks(each, { logger: false })) as [Locks, Locks];
  await app.acquire('key');
  const keys = Array.from({ length: 60 }, (_, index) => `${index}`.padEnd(400, '-'));
  for (const key of keys) {
    await app.acquire(key);
    await app.acquire(key, { waitTimeout: 1 }).catch(() => undefined);
  }
  const seen = new Set<string>();
  for await (const { key } of looks.watch()) if (seen.add(key).size === keys.length) break;
  expect(lost).toBeGreaterThan(3);
  for (const each of [app, looks]) await each.close();
});
