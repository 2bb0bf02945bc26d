import { PGlite } from '@electric-sql/pglite';
import { Locks } from 'nestjs-distributed-lock/core';
import { tellParent } from '../support/child.js';
import { byPglite } from './pglite.js';

const db = await PGlite.create();
// Two stores on one PGlite are as two processes on one server. Only a message can end a wait in time.
const open = (): Locks => new Locks(byPglite(db), { logger: false, defaults: { keyTimeout: 600_000, retryInterval: 300_000 } });
const [mine, theirs] = [open(), open()];
const seen: unknown[] = [];
for (let round = 0; round < 3; round++) {
  const lease = await mine.acquire('order:42', { waitTimeout: 600_000 });
  seen.push(await theirs.tryAcquire('order:42'));
  const waits = new Promise((resolve) => theirs.on('waiting', resolve));
  const waiting = theirs.acquire('order:42', { waitTimeout: 600_000 });
  await waits;
  await lease.release();
  const next = await waiting;
  seen.push(next.fencingToken! > lease.fencingToken!);
  await next.release();
}
await db.transaction(async (tx) => {
  const inside = new Locks(byPglite({ query: tx.query.bind(tx), listen: db.listen.bind(db) }), { logger: false });
  seen.push(await inside.tryAcquire('order:42').catch(String));
  await inside.close();
});
await Promise.all([mine.close(), theirs.close()]);
await db.close();
tellParent({ type: 'seen', seen });
