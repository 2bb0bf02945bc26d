// Locks without Nest. It ends by itself: a timer or connection that `close` left behind would keep the process alive.
const assert = require('node:assert/strict');
const { mkdtempSync } = require('node:fs');
const { join } = require('node:path');

module.exports = async function scenario({ Locks, LockTimeoutError, store, otherStore }) {
  const locks = new Locks(store, { namespace: 'package:' });
  const others = new Locks(otherStore, { namespace: 'package:' });

  const first = await locks.acquire('order:42', { keyTimeout: 5000 });
  first.assertHeld();
  assert.ok(first.remaining() > 0 && first.remaining() <= 5000);
  assert.ok(Number.isSafeInteger(first.fencingToken));
  assert.equal(await others.tryAcquire('order:42'), null);
  await assert.rejects(others.acquire('order:42', { waitTimeout: 50 }), LockTimeoutError);

  const waiting = others.acquire('order:42', { waitTimeout: 5000 });
  assert.equal(await first.release(), true);
  const second = await waiting;
  assert.ok(second.fencingToken > first.fencingToken);
  assert.equal(await second.release(), true);
  assert.equal(await locks.using('order:42', async (lease) => lease.key), second.key);

  await locks.close();
  await others.close();
};

/** Two stores onto the same data. @param {Function} make the function of this store. */
module.exports.open = (name, make) => {
  if (name === 'memory') {
    const store = make();
    return { store, otherStore: store };
  }
  const options = {
    file: () => ({ directory: mkdtempSync(join(__dirname, 'locks-')) }),
    redis: () => ({ options: JSON.parse(process.env.TEST_REDIS) }),
    postgres: () => ({ url: process.env.TEST_POSTGRES, schema: 'create' }),
    mysql: () => ({ url: process.env.TEST_MYSQL, schema: 'create' }),
  }[name]();
  return { store: make(options), otherStore: make(options) };
};
