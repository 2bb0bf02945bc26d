import { type Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import { endOf, loadScripts, outcomeOf, shaOf, SLACK, useRedis } from './setting.js';

const KEY = 'order:42';
const REQUEST_TIMEOUT = 500;
/** So long that a test that waited it out would fail. */
const KEY_TIMEOUT = 60_000;
const patient = { keyTimeout: KEY_TIMEOUT, waitTimeout: 15_000 };

describe.each(['reset', 'silence'] as const)('a request that is applied, while its reply is lost in a %s', (then) => {
  describe.each(['own', 'borrowed'] as const)("of the store's %s connection", (whose) => {
    const setting = useRedis();
    let proxy: TcpProxy;
    let locks: Locks;
    let stranger: Locks;

    beforeEach(async () => {
      await loadScripts(setting.redis);
      proxy = await setting.proxy();
      stranger = setting.own();
      // A client that is lent heals itself as its owner has told it to. ioredis then sends again what had no reply, also what we gave up.
      const healing = whose === 'own' ? {} : { socketTimeout: REQUEST_TIMEOUT + 200 };
      locks = setting[whose]({ ...proxy.connection, ...healing }, { requestTimeout: REQUEST_TIMEOUT });
      await locks.using('warm-up', () => undefined, patient);
      await setting.redis.flushall();
    });

    it('is an acquire: it is asked for again, and granted to nobody else (G6)', async () => {
      const loss = proxy.dropReplyTo(shaOf('acquire'), { then });
      const { value: lease, took } = await outcomeOf(locks.acquire(KEY, patient));
      expect(loss.lost).toBe(1);
      expect(took).toBeLessThan(2 * REQUEST_TIMEOUT + SLACK);
      expect(await setting.redis.get(KEY)).toBe(lease!.owner);
      expect(await stranger.tryAcquire(KEY)).toBeNull();
      lease!.assertHeld();
      expect(await lease!.release()).toBe(true);

      const next = await stranger.acquire(KEY, patient);
      expect(next.fencingToken).toBeGreaterThan(lease!.fencingToken!);
      await locks.close();
      expect(await next.release()).toBe(true);
      expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
    });

    it('is a renewal: the lease is not taken for lost, and renewed (G4, G6)', async () => {
      const lost = jest.fn();
      const unknown = jest.fn();
      locks.on('lost', lost);
      locks.on('unknown', unknown);
      const lease = await locks.acquire(KEY, { ...patient, keyTimeout: 4_000 });
      const loss = proxy.dropReplyTo(shaOf('renew'), { then });
      await eventually(() => loss.lost === 1, { within: 4_000 });
      await eventually(() => unknown.mock.calls.length > 0);
      const end = endOf(lease);
      await eventually(() => endOf(lease) > end + 100, { within: 4_000 });
      lease.assertHeld();
      expect(await setting.redis.get(KEY)).toBe(lease.owner);
      expect(await lease.release()).toBe(true);
      expect(lost).not.toHaveBeenCalled();
    });

    it('is a release: the result comes through in time, and the repeated release takes nothing from the next holder (G5, G6, G9, G10)', async () => {
      const lost = jest.fn();
      locks.on('lost', lost);
      const loss = proxy.dropReplyTo(shaOf('release'), { then });
      let next: ReturnType<Locks['acquire']> | undefined;
      const work = async (): Promise<string> => {
        next = stranger.acquire(KEY, { ...patient, retryInterval: 20 });
        return 'result';
      };
      const { value, took } = await outcomeOf(locks.using(KEY, work, patient));
      expect(value).toBe('result');
      expect(took).toBeLessThan(REQUEST_TIMEOUT + SLACK);
      const lease = await next!;
      expect(loss.lost).toBe(1);
      await eventually(async () => (await locks.tryAcquire('later')) !== null, { within: 2 * REQUEST_TIMEOUT + SLACK });
      await locks.close();
      expect(await setting.redis.get(KEY)).toBe(lease.owner);
      lease.assertHeld();
      expect(await lease.release()).toBe(true);
      expect(lost).not.toHaveBeenCalled();
    });
  });
});
