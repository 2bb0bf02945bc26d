// A store by its URL beside one with the user's own client, which stays open when the store is closed.
const assert = require('node:assert/strict');

module.exports = async function scenario({ Locks, LockTimeoutError, redisStore, Redis }) {
  process.exitCode = 1; // until the end is reached: a promise that nobody settles lets a process end, too
  const url = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379';
  const namespace = `clients-${process.pid}:`; // programs run side by side on one server
  const client = new Redis(url);
  const byUrl = new Locks(redisStore({ url }), { namespace });
  const byClient = new Locks(redisStore({ client }), { namespace });

  let running = 0;
  let together = 0;
  const tokens = [];
  const work = async ({ fencingToken }) => {
    together = Math.max(together, ++running);
    tokens.push(fencingToken);
    await client.ping();
    running--;
  };
  const takers = Array.from({ length: 8 }, (_, index) => (index % 2 ? byUrl : byClient));
  await Promise.all(takers.map((locks) => locks.using('order:42', work, { keyTimeout: 60_000, waitTimeout: 20_000 })));
  assert.equal(together, 1, 'two held one key');
  assert.deepEqual(
    tokens,
    [...new Set(tokens)].sort((a, b) => a - b),
    'fencing tokens must grow',
  );

  const held = await byUrl.acquire('order:42', { keyTimeout: 60_000 });
  await held.renew();
  assert.equal(await byClient.tryAcquire('order:42'), null);
  await assert.rejects(byClient.acquire('order:42', { waitTimeout: 50 }), LockTimeoutError);
  const waiting = byClient.acquire('order:42', { waitTimeout: 20_000 });
  assert.equal(await held.release(), true);
  assert.equal(await (await waiting).release(), true);

  await byClient.close();
  await byUrl.close();
  assert.equal(await client.ping(), 'PONG', 'the client of the user must stay open');
  await client.quit();
  process.exitCode = 0;
};
