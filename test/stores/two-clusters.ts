import { LockConfigError, Locks, type LockStore } from 'nestjs-distributed-lock/core';
import { rejection } from '../support/rejection.js';
import { examined } from '../doctor/examined.js';
import { boot } from '../nest/boot.js';
import { Log } from '../nest/log.js';
import { forkChild } from '../support/child.js';
import type { DatabaseServer } from '../support/database-process.js';
import { eventually } from '../support/eventually.js';
import type { TakerMessage } from './taker.child.js';

type Options = object & { requestTimeout?: number };

/** A list of the members of two clusters, each of which would grant the same key. */
export function twoClusters<M extends DatabaseServer>(engine: {
  name: string;
  start(): Promise<M>;
  /** The options of a store over these members. */
  options(members: readonly M[]): Options;
  store(options: Options): LockStore;
}): void {
  describe('members of two clusters in one list', () => {
    let members: [M, M];
    let options: Options;
    beforeAll(async () => {
      members = await Promise.all([engine.start(), engine.start()]);
      options = { ...engine.options(members), requestTimeout: 5000 };
    });
    afterAll(() => Promise.all(members.map((member) => member.stop())));

    const opened: Locks[] = [];
    afterEach(() => Promise.all(opened.splice(0).map((locks) => locks.close())));
    function open(given = options): Locks {
      opened.push(new Locks(engine.store(given), { logger: false, defaults: { keyTimeout: 20_000, waitTimeout: 30_000 } }));
      return opened.at(-1)!;
    }

    it('give no lock to any process', async () => {
      const children = await Promise.all(
        [1, 2, 3].map(() =>
          forkChild<TakerMessage>('test/stores/taker.child.ts', { args: [JSON.stringify({ engine: engine.name, options })] }),
        ),
      );
      for (const child of children) expect(await child.waitFor('refused')).toMatchObject({ name: 'LockConfigError' });
      await Promise.all(children.map((child) => child.kill()));
    });

    it('give no lock to any store, and say so once and for all', async () => {
      for (let tries = 0; tries < 6; tries++) {
        const locks = open();
        for (let calls = 0; calls < 2; calls++) {
          const error = await rejection(locks.acquire('order:42'));
          expect(error).toBeInstanceOf(LockConfigError);
          expect(error).toMatchObject({ transient: false, message: expect.stringContaining('are not of one cluster') });
        }
      }
    });

    it('give none to an app that starts anyway, whose log never says that locks are granted again', async () => {
      const log = new Log();
      const { locks } = await boot({}, { store: engine.store(options), logger: log, failFast: false });
      for (let calls = 0; calls < 3; calls++) expect(await rejection(locks.acquire('order:42'))).toBeInstanceOf(LockConfigError);
      await eventually(() => expect(log.warnings.join('\n')).toContain('gives no locks: '));
      expect(log.warnings.join('\n')).not.toContain('again');
    });

    it('make the store unfit for locks', async () => {
      const report = await examined(engine.store(options));
      expect(report.verdict).toMatchObject({ efficiency: 'no' });
      expect(report.of('role')).toMatchObject({ state: 'bad', advice: expect.stringContaining('one') });
    });

    it('give locks as long as one of them is down, and none when that one answers', async () => {
      const [first, second] = members;
      await first.kill();
      const locks = open();
      await (await locks.acquire('order:1')).release();
      await first.restart();
      await second.kill();
      await eventually(async () =>
        expect(await rejection(locks.acquire('order:1', { waitTimeout: 1000 }))).toBeInstanceOf(LockConfigError),
      );
      await second.restart();
    });
  });
}
