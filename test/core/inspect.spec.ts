import { Locks, UnsupportedPrimitiveError, type Bus } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { gate } from '../contract/gate.js';
import { pause } from '../support/time.js';

describe('a store without inspection', () => {
  const store = { ...memoryStore(), inspector: undefined, bus: undefined };
  const locks = new Locks(store, { logger: false, visible: true });
  afterAll(() => locks.close());

  it('is refused by a typed error, and locks all the same', async () => {
    for (const call of [
      () => locks.inspect('key'),
      () => locks.list()[Symbol.asyncIterator]().next(),
      () => locks.forceRelease('key', { reason: 'r' }),
    ]) {
      await expect(call()).rejects.toBeInstanceOf(UnsupportedPrimitiveError);
    }
    expect(await locks.using('key', () => 'done')).toBe('done');
  });
});

describe('a store without a bus', () => {
  const locks = new Locks({ ...memoryStore(), bus: undefined }, { logger: false });
  afterAll(() => locks.close());

  it('shows what it knows and what this process tells, and asks a holder of this process', async () => {
    const begun = gate();
    const work = locks.using('key', ({ signal }) => (begun.open(), new Promise((resolve) => signal.addEventListener('abort', resolve))), {
      label: 'Work',
    });
    await begun.passed;
    expect((await locks.inspect('key')).holders).toMatchObject([{ told: { label: 'Work' } }]);
    expect(await locks.forceRelease('key', { reason: 'stuck' })).toMatchObject({ outcome: 'gave back' });
    await work;
  });
});

describe('a key that is asked back', () => {
  const store = memoryStore();
  const [locks, others] = [new Locks(store, { logger: false }), new Locks(store, { logger: false })];
  afterAll(() => Promise.all([locks.close(), others.close()]));

  it('is renewed until its work has ended', async () => {
    const begun = gate();
    const end = gate();
    const work = locks.using('key', async () => (begun.open(), end.passed), { keyTimeout: 500 });
    await begun.passed;
    const reply = others.forceRelease('key', { reason: 'stuck', grace: 60_000 });
    let isOver = false;
    const next = others.using('key', () => isOver, { waitTimeout: Infinity });
    // Longer than its lease.
    await pause(1_200);
    isOver = true;
    end.open();
    await work;
    expect([await next, (await reply).outcome]).toEqual([true, 'gave back']);
  });
});

describe('forceRelease', () => {
  it('asks again until the holder has heard it', async () => {
    const store = memoryStore();
    const real = store.bus!;
    let lost = 0;
    const publish: Bus['publish'] = (topic, text) => (topic === 'revoke' && lost++ < 2 ? Promise.resolve(1) : real.publish(topic, text));
    const bus = Object.assign(Object.create(real) as Bus, { publish });
    const [locks, others] = [store, { ...store, bus }].map((each) => new Locks(each, { logger: false })) as [Locks, Locks];
    const begun = gate();
    const work = locks.using('key', ({ signal }) => (begun.open(), new Promise((end) => signal.addEventListener('abort', end))));
    await begun.passed;
    expect(await others.forceRelease('key', { reason: 'stuck' })).toMatchObject({ outcome: 'gave back' });
    await work;
    expect(lost).toBeGreaterThan(2);
    await Promise.all([locks.close(), others.close()]);
  });

  it('keeps keys out of the log where they may not be in it', async () => {
    const lines: string[] = [];
    const warn = (line: string) => void lines.push(line);
    const locks = new Locks(memoryStore(), { logger: { warn, error: warn }, logKeys: 'none' });
    const lease = await locks.acquire('customer:4711', { label: 'Shop.sell' });
    await locks.forceRelease('customer:4711', { reason: 'stuck', by: 'jane', grace: 0 });
    expect(await lease.release()).toBe(false);
    expect(lines).toContainEqual('a key is taken from Shop.sell by jane: stuck');
    expect(lines.join()).not.toContain('4711');
    await locks.close();
  });
});
