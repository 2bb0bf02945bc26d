// Locks without Nest. It ends by itself: a timer or connection that `close` left behind would keep the process alive.
const assert = require('node:assert/strict');
const { mkdtempSync } = require('node:fs');
const { join } = require('node:path');

module.exports = async function scenario({ Locks, LockTimeoutError, store, otherStore, end }) {
  process.exitCode = 1; // until the end is reached: a promise that nobody settles lets a process end, too
  const namespace = `package-${process.pid}:`; // programs run side by side on one server
  const locks = new Locks(store, { namespace });
  const others = new Locks(otherStore, { namespace });

  const first = await locks.acquire('order:42', { keyTimeout: 5000 });
  first.assertHeld();
  assert.ok(first.remaining() > 0 && first.remaining() <= 5000);
  assert.ok(Number.isSafeInteger(first.fencingToken));
  await first.renew();
  assert.equal(await others.tryAcquire('order:42'), null);
  await assert.rejects(others.acquire('order:42', { waitTimeout: 50 }), LockTimeoutError);

  const waiting = others.acquire('order:42', { waitTimeout: 5000 });
  assert.equal(await first.release(), true);
  const second = await waiting;
  assert.ok(second.fencingToken > first.fencingToken);
  assert.equal(await second.release(), true);
  assert.equal(await locks.using('order:42', async (lease) => lease.key), second.key);

  let running = 0;
  const tokens = [];
  const work = async ({ fencingToken }) => {
    assert.equal(++running, 1, 'two held one key');
    tokens.push(fencingToken);
    await new Promise((resolve) => setTimeout(resolve, 2));
    running--;
  };
  const takers = Array.from({ length: 8 }, (_, index) => (index % 2 ? locks : others));
  await Promise.all(takers.map((each) => each.using('order:42', work, { keyTimeout: 60_000, waitTimeout: 20_000 })));
  const grown = [...new Set(tokens)].sort((a, b) => a - b);
  assert.deepEqual(tokens, grown, 'fencing tokens must grow');

  await locks.close();
  await others.close();
  await end?.();
  process.exitCode = 0;
};

/** Two stores onto the same data, that of Redis by a URL and by a client of the user, which stays open. @param {Function} make the function of this store. */
module.exports.open = (name, make) => {
  const url = process.env[{ redis: 'REDIS_URL', postgres: 'TEST_POSTGRES', mysql: 'TEST_MYSQL' }[name]];
  if (name === 'redis') {
    const { Redis } = require('ioredis');
    const client = new Redis(url ?? 'redis://127.0.0.1:6379');
    const end = async () => {
      assert.equal(await client.ping(), 'PONG', 'the client of the user must stay open');
      await client.quit();
    };
    return { store: make({ url: url ?? 'redis://127.0.0.1:6379' }), otherStore: make({ client }), end };
  }
  if (name === 'memory') {
    const store = make();
    return { store, otherStore: store };
  }
  const options = name === 'file' ? { directory: mkdtempSync(join(__dirname, 'locks-')) } : { url, schema: 'create' };
  return { store: make(options), otherStore: make(options) };
};
