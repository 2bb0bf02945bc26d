// Who may publish messages, or spoil what a store has written, can break no process: what is none is dropped, or rejects as an error of the store.
import { EventEmitter } from 'node:events';
import { LockError, Locks, type LockStore } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { answerOf, questionOf, receive, revokeRequestOf } from '../../lib/operate/messages.js';
import { LockEventEmitter } from '../../lib/core/model/events.js';
import { LockLog } from '../../lib/core/model/lock-log.js';
import { Inbox } from '../../lib/core/store/inbox.js';
import type { WakeUps } from '../../lib/core/store/lease-driver.js';
import { FileWakeUps } from '../../lib/stores/file/file.wakeups.js';
import { PostgresWakeUps } from '../../lib/stores/postgres/postgres.wakeups.js';
import { QuorumWakeUps } from '../../lib/stores/quorum/quorum.wakeups.js';
import { recordStore } from '../../lib/stores/records/record.store.js';
import type { RedisClient } from '../../lib/stores/redis/connection/redis.client.js';
import { RedisConnection } from '../../lib/stores/redis/connection/redis.connection.js';
import { RedisWakeUps } from '../../lib/stores/redis/waiting/redis.wakeups.js';
import { MapData, MapTable } from '../support/map-table.js';
import { randomOf } from '../support/random.js';

const SEED = 20_251_123;
const OWNER = 'app@host:1:00000000-0000-4000-8000-000000000000';
const PART = 'x'.repeat(36);
const TELLER = { label: 'Shop.sell', since: 0, token: 1, patienceLeft: null, waiting: 1, oldestWait: 5, holding: ['uuid key'] };
const ANSWER = { version: 1, ids: ['id'], connection: 'inbox', entries: [{ key: 'key', owner: OWNER, holder: TELLER }], goesOn: false }; // prettier-ignore
const OPERATORS = [
  { version: 1, id: 'id', keys: ['key'] },
  { version: 1, id: 'id', known: { id: 1 } },
  { version: 1, id: 'id', key: 'key', owner: OWNER, reason: 'reason', by: 'jane', isOver: true },
  { version: 1, process: 'app@host:1', from: 'id', after: 0, events: [{ number: 1, event: 'lost', at: 0, firstAt: 0, count: 1, key: 'key', reason: 'why' }] }, // prettier-ignore
  ANSWER,
].map((message) => JSON.stringify(message));
const HOLD = { owner: OWNER, count: 1, endsAt: 9e15, ttl: 5_000, token: 1 };
const ENTRY = { owner: OWNER, inbox: 'inbox', offer: 1_000, count: 1, rank: 0, since: 1 };
const RECORDS = [
  { kind: 'mutex', permits: 1e9, holds: [HOLD], queue: [ENTRY], queueEndsAt: 9e15 },
  { kind: 'semaphore', permits: 5, holds: [HOLD], queue: [], queueEndsAt: 0 },
  { kind: 'count-down latch', id: 'id', count: 2, round: 1, endsAt: 9e15, ttl: 5_000, lines: { line: [1, 1, 9e15] }, waiters: { [OWNER]: 'inbox' } },
].map((record) => JSON.stringify(record)); // prettier-ignore

/** Of a fixed seed: the same in each run. */
function dice(): (sides: number) => number {
  const random = randomOf(SEED);
  return (sides) => Math.floor(random() * sides);
}

const CHARACTERS = [...'\n\t\u0000\u0001\u001b\ud800\u202e{}[]":,\\/*-+.eE0189aZ\u{1F512} ', '__proto__', 'NaN', '1e999', 'null', OWNER];
const VALUES: unknown[] = [null, undefined, true, NaN, Infinity, -1, 0, 1, 1.5, 2 ** 53, '', '1', 'OK', 'QUEUED', '1e999', OWNER, 'x\ny', [], {}, { length: 1e9 }, 1n, Buffer.from('1'), new Error('ERR'), () => 1]; // prettier-ignore
const HUGE = [...'["9\n\t:,{\u0000\ud800', '{"a":', 'a\n', 'a\t1\n', '1,', '[],', '"a",', '\\u0000'].flatMap((unit) =>
  [8_000, 65_500, 4_000_000].flatMap((length) => {
    const text = unit.repeat(length / unit.length);
    return [text, `{"version":1,"id":"id","ids":[${text.replace(/,$/, '')}]}`, `${PART}:2:0:${text}`];
  }),
);

/** Random and truncated ones, and samples of which a part is another one; and those that are huge. */
function* hostileTexts(count: number, samples: readonly string[], huge = HUGE): Generator<string> {
  const roll = dice();
  const pick = <T>(of: readonly T[]): T => of[roll(of.length)] as T;
  yield* huge;
  for (let i = 0; i < count; i++) {
    const sample = pick(samples);
    const at = roll(sample.length);
    const garbage = Array.from({ length: roll(roll(20) === 0 ? 300 : 4) }, () => pick(CHARACTERS)).join('');
    const ways = [
      garbage,
      sample.slice(0, at),
      sample + garbage,
      sample.slice(0, at) + garbage + sample.slice(at + roll(9)),
      altered(sample),
    ];
    yield pick(ways);
  }

  /** With another value for one of its parts. */
  function altered(sample: string): string {
    let left = roll(20);
    const value = (_name: string, old: unknown): unknown =>
      left-- === 0 ? String(pick(VALUES)) : left === -1 ? pick(VALUES.slice(0, 20)) : old;
    try {
      return JSON.stringify(JSON.parse(sample), value) ?? '';
    } catch {
      return sample.split(/(\W)/).map((part) => (left-- === 0 ? pick(CHARACTERS) : part)).join(''); // prettier-ignore
    }
  }
}

/** A reply with some of its parts changed, or any value. */
function hostileReply(roll: (sides: number) => number): unknown {
  const value = (depth: number): unknown =>
    depth > 0 && roll(2) === 0 ? Array.from({ length: roll(10) }, () => value(depth - 1)) : VALUES[roll(VALUES.length)];
  return value(3);
}

/** Microseconds of the processor. */
function costOf(work: () => void): number {
  const start = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(start);
  return user + system;
}

const everyVerb = ({ mutex, readWriteLock, semaphore, countDownLatch, inspector }: LockStore): (() => Promise<unknown>)[] => {
  const tenancy = { key: 'key', owner: OWNER };
  const acquire = { ...tenancy, ttl: 5_000, tokens: 1, queue: true };
  const operation = { line: 'line', number: 1 };
  const drivers = [mutex, readWriteLock!.read, semaphore!];
  return [
    ...drivers.flatMap((driver) => [
      () => driver.acquire({ ...acquire, share: { count: 1, permits: 2, rank: 0 } }),
      () => driver.acquire({ ...acquire, yields: 'other' }).then((reply) => expect(reply).not.toMatchObject({ token: NaN })),
      () => driver.renew([{ ...tenancy, ttl: 5_000 }])[0]!,
      () => driver.release({ ...tenancy, keepFor: 5 }),
      () => driver.leave(tenancy),
      () => driver.check(tenancy),
    ]),
    () => mutex.extend!({ ...tenancy, ttl: 5_000, tokens: 2 }),
    () => countDownLatch!.trySetCount({ ...tenancy, ttl: 5_000, operation, count: 2 }),
    () => countDownLatch!.countDown({ ...tenancy, ttl: 5_000, operation }),
    () => countDownLatch!.look({ ...tenancy, queue: true }),
    () => countDownLatch!.leave(tenancy),
    () => inspector!.inspect(['key']),
    () => inspector!.seize({ ...tenancy, kind: 'mutex', phase: 'held', token: undefined, keepFor: 0 }),
    () => inspector!.keys('', false)[Symbol.asyncIterator]().next(),
  ];
};

/** As many as were sent in a row are handled, before more are sent. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export function hostilePlay(count: number): void {
  describe(`of ${count} hostile messages`, () => {
    const members = [{ answered: () => Promise.resolve() }] as never[];
    const stand = Object.assign(new EventEmitter(), { options: { keyPrefix: 'p:' } }) as unknown as RedisClient;
    const redis = new RedisWakeUps(new RedisConnection(stand, 5_000));
    const postgres = new PostgresWakeUps(() => Promise.reject(new Error('never')), () => Promise.resolve([]), 5_000, 'distributed_lock'); // prettier-ignore
    const file = new FileWakeUps('inboxes', 'drafts', 5_000);
    const lines = [OWNER, `${OWNER}\t500`, `${OWNER}\nother\t12.5`, `echo:${OWNER}`];
    const parts = [`${PART}:2:0:eA==`, `${PART}:2:1:eA==`, `${PART}:3:2:eA==`];
    const channels: { name: string; samples: string[]; hear: (text: string) => void; inbox?: WakeUps }[] = [
      ...[questionOf, revokeRequestOf, answerOf].map((read) => ({
        name: `operators (${read.name})`,
        samples: OPERATORS,
        hear: (text: string) => void receive<unknown>(text, 'ops', read, new LockEventEmitter(new LockLog(false)), () => undefined),
      })),
      {
        name: 'the inbox on Redis',
        samples: [OWNER, `${OWNER}\np:key`, `${OWNER}\np:key\n500`],
        hear: (text) => redis['received'](text),
        inbox: redis,
      },
      { name: 'the inbox on Postgres', samples: lines, hear: (text) => postgres.received(text), inbox: postgres },
      {
        name: 'the topics on Postgres',
        samples: [...parts, ...OPERATORS],
        hear: (text) => postgres.bus.received('distributed_lock:ops', text),
      },
      { name: 'the inbox of files', samples: lines, hear: (text) => file.received(text), inbox: file },
      { name: 'the topics of files', samples: OPERATORS.map((text) => `\u0001ops\n${text}`), hear: (text) => file.received(text) },
      { name: 'a quorum', samples: lines, hear: (text) => [postgres, file].forEach((each) => each.received(text)), inbox: new QuorumWakeUps(members, [postgres, file]) }, // prettier-ignore
    ];
    /** What the longest message that operators send costs. */
    const entries = Array.from({ length: 320 }, () => ANSWER.entries[0]);
    const harmless = JSON.stringify({ ...ANSWER, entries });

    it.each(channels)('none to $name throws, is read as what it is not, or costs much', async ({ name, samples, hear, inbox }) => {
      expect(harmless.length).toBeGreaterThan(60_000);
      expect(answerOf(harmless)).toBeDefined();
      const asked: (number | undefined)[] = [];
      const debug = jest.fn();
      if (inbox instanceof Inbox) inbox['debug'] = debug;
      const stop = inbox?.listen(OWNER, (askIn) => asked.push(askIn));
      const worst: [cost: number, text: string][] = [];
      let sent = 0;
      for (const text of hostileTexts(count, samples)) {
        const cost = costOf(() => hear(text));
        if (cost > (worst[4]?.[0] ?? 0)) worst.splice(4, 1, [cost, text]);
        worst.sort(([one], [other]) => other - one);
        if (++sent % 1_000 === 0) await turn();
      }
      await turn();
      expect(asked.filter((askIn) => askIn !== undefined && !(askIn >= 0 && askIn < 1e9))).toEqual([]);
      if (inbox instanceof Inbox) expect(debug).toHaveBeenCalledWith(expect.stringMatching(/was dropped\.$/));
      // Many at once: the kernel may count what takes a few milliseconds as nothing.
      const unit = costOf(() => Array.from({ length: 50 }, () => answerOf(harmless))) / 50;
      expect(unit).toBeGreaterThan(0);
      // The compiler and the collector work on other threads, which count, too: a message is dear if it was never cheap.
      const isDear = (text: string) => Array.from({ length: 20 }).every(() => costOf(() => hear(text)) > 20 * unit);
      const dear = worst.find(([, text]) => isDear(text))?.[1];
      expect(dear && `${name}: ${dear.length} characters: ${dear.slice(0, 40)}`).toBeUndefined();
      if (inbox) {
        asked.length = 0;
        hear(name.includes('Redis') ? `${OWNER}\np:key` : OWNER);
        await turn();
        expect(asked.length).toBeGreaterThan(0);
      }
      stop?.();
    });

    it('none makes Postgres keep more than one text, or miss the next one', async () => {
      const sent: string[] = [];
      const { bus } = new PostgresWakeUps(
        () => Promise.reject(new Error('never')),
        (_, [, texts]) => (sent.push(...(texts as string[])), Promise.resolve([])),
        5_000,
        'distributed_lock',
      );
      const heard: string[] = [];
      await bus.listen('ops', (text) => heard.push(text));
      const roll = dice();
      for (let i = 0; i < count; i++) {
        bus.received('distributed_lock:ops', `${roll(1_000) === 0 ? 'y'.repeat(36) : PART}:999:${i % 998}:${'x'.repeat(7_800)}`);
        expect(JSON.stringify(bus['partial'] ?? '').length).toBeLessThan(34 * 8_000);
      }
      await bus.publish('ops', 'long'.repeat(16_000));
      for (const text of sent) bus.received('distributed_lock:ops', text);
      expect(heard.at(-1)).toBe('long'.repeat(16_000));
    });

    it('one that is no text, or that fails what it asks for, throws and rejects nothing', async () => {
      // A client, or a function of the app that listens, may give anything.
      for (const value of VALUES as string[]) {
        for (const inbox of [redis, postgres]) inbox.received(value);
        postgres.bus.received('distributed_lock:ops', value);
      }
      const events = new LockEventEmitter(new LockLog(false));
      for (const value of VALUES) await receive(value as string, 'ops', questionOf, events, () => undefined);
      const fail = (): never => {
        throw new Error('a fault');
      };
      for (const work of [fail, () => Promise.reject(new Error('a fault'))]) await receive(OPERATORS[0]!, 'ops', questionOf, events, work);
    });

    it('none loses a lease, or keeps it from the next one', async () => {
      const store = memoryStore();
      const lines: string[] = [];
      const logger = { warn: (line: string) => lines.push(line), error: (line: string) => lines.push(line), debug: (line: string) => lines.push(line) }; // prettier-ignore
      const locks = new Locks(store, { logger });
      const lease = await locks.acquire('key', { keyTimeout: 3_600_000 });
      const waits = locks.acquire('key', { keyTimeout: 3_600_000, waitTimeout: Infinity, fair: true });
      const forged = JSON.stringify({ version: 1, id: 'id', key: 'key', owner: lease.owner, reason: 'forged', isOver: true });
      let sent = 0;
      for (const text of hostileTexts(count, OPERATORS)) {
        for (const topic of ['ops', 'ops:told', 'revoke'] as const) void store.bus!.publish(topic, text);
        if (++sent % 500 === 0) {
          void store.bus!.publish('revoke', forged);
          await turn();
        }
      }
      await turn();
      expect(lease.signal.aborted).toBe(false);
      // One line a minute for each topic, without a word of the stranger.
      expect(new Set(lines.filter((line) => line.includes('dropped')).map((line) => line.replace(/ \(and.*/, ''))).size).toBe(2);
      expect(await lease.release()).toBe(true);
      expect(await (await waits).release()).toBe(true);
      await locks.close();
    });
  });

  describe(`of ${count} hostile replies`, () => {
    /** How the operations fail, other than as they should. */
    const faultsOf = async (store: LockStore, next: () => void): Promise<unknown[]> => {
      const verbs = everyVerb(store);
      const faults: unknown[] = [];
      for (let i = 0; i < count; i++) {
        next();
        await verbs[i % verbs.length]!().catch((error: unknown) => {
          if (!(error instanceof LockError)) faults.push(error);
        });
      }
      return faults;
    };

    it('of the scripts of Redis each is an answer or a StoreError', async () => {
      const roll = dice();
      const reply = (): Promise<unknown> => Promise.resolve(hostileReply(roll));
      const ours = { status: 'ready', options: {}, evalsha: reply, eval: reply, call: reply, publish: reply, pubsub: reply, quit: reply };
      const client = { options: {}, evalsha: reply, duplicate: () => Object.assign(new EventEmitter(), ours, { disconnect() {} }) };
      const store = redisStore({ client: client as unknown as RedisClient, requestTimeout: 5_000 });
      expect(await faultsOf(store, () => undefined)).toEqual([]);
      await store.close();
    });

    it('of a table each is an answer or a StoreError', async () => {
      const data = new MapData();
      const table = new MapTable(data, { after: (_, found) => void (damage < 2 && Object.assign(found, { [damage ? 'time' : 'fence']: NaN })) }, 5_000, false); // prettier-ignore
      const roll = dice();
      const texts = hostileTexts(Infinity, RECORDS, []);
      let damage = 2;
      const faults = await faultsOf(recordStore(table), () => {
        damage = roll(10);
        data.rows.set('key', {
          version: String(roll(1e9)),
          record: texts.next().value as string,
          endsAt: Infinity,
          fence: roll(2) && roll(1e15),
        });
      });
      expect(faults).toEqual([]);
    });

    it.each([{ endsAt: 'never' }, { owner: 5 }, { count: null }, { token: 'x' }])('a hold with %j is no free key', async (damage) => {
      const data = new MapData();
      const store = recordStore(new MapTable(data));
      const record = JSON.stringify({ kind: 'mutex', permits: 1e9, holds: [{ ...HOLD, ...damage }], queue: [], queueEndsAt: 0 });
      data.rows.set('key', { version: 'v', record, endsAt: Infinity, fence: 1 });
      const acquired = store.mutex.acquire({ key: 'key', owner: 'other', ttl: 5_000, tokens: 1, queue: false });
      await expect(acquired).rejects.toThrow('is not valid');
    });

    it.each([{ fence: NaN }, { fence: -1 }, { fence: 2 ** 53 }, { time: NaN }])('a reply with %p gives no token', async (damage) => {
      const store = recordStore(new MapTable(new MapData(), { after: (_, found) => void Object.assign(found, damage) }));
      const acquired = store.mutex.acquire({ key: 'key', owner: 'other', ttl: 5_000, tokens: 1, queue: false });
      await expect(acquired).rejects.toThrow('is not valid');
    });

    it('of the rows of Postgres each is an answer or a StoreError', async () => {
      const roll = dice();
      const texts = hostileTexts(Infinity, RECORDS, []);
      const row = (): object => ({ i: roll(3), written: roll(2) === 0, version: String(roll(9)), record: texts.next().value, fence: VALUES[roll(16)], time: roll(9) ? Date.now() : VALUES[roll(16)], key: 'key' }); // prettier-ignore
      const store = postgresStore({ query: () => Promise.resolve(roll(9) ? [row()] : []), requestTimeout: 5_000 });
      expect(await faultsOf(store, () => undefined)).toEqual([]);
      await store.close();
    });
  });
}
