// What the doctor says to Redis users that may not do everything.
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { eventually } from '../support/eventually.js';
import { startClusterNode } from '../support/redis-cluster.js';
import { read } from '../support/markdown.js';
import { refusedBy, useRedis } from '../stores/redis/setting.js';
import { examined } from './examined.js';

// ioredis prints that it skips its ready check.
jest.spyOn(console, 'warn').mockReturnValue();

const setting = useRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });

/** A store of a user with these rules, beside a password. */
async function storeOf(rules: readonly string[], keyPrefix = '') {
  await setting.redis.acl('SETUSER', 'locks', 'reset', 'on', '>secret', ...rules);
  setting.finally(() => setting.redis.acl('DELUSER', 'locks'));
  const options = { ...setting.server.connection, username: 'locks', password: 'secret', keyPrefix };
  return redisStore({ options, requestTimeout: 5000 });
}

/** What `doctor --acl` prints for a user, as rules. */
async function rulesOf(name: string, { keyPrefix = '', namespace = '' } = {}): Promise<string[]> {
  const store = redisStore({ options: { ...setting.server.connection, keyPrefix } });
  const { rights = '' } = await examined(store, { namespace, probe: 1 });
  return linesOf(rights, name).split(' ').slice(4);
}

function linesOf(text: string, name: string): string {
  return new RegExp(`^user ${name} on >secret .+$`, 'm').exec(text)![0];
}

const containing = (text: string) => expect.stringContaining(text) as string;

it('a user who lacks the keys of a namespace, or the channels, is seen by the lock that is tried', async () => {
  const rules = await rulesOf('doctor');
  const elsewhere = rules.map((rule) => (rule === '~*' ? '~other:*' : rule));
  const { of, verdict } = await examined(await storeOf(elsewhere), { namespace: 'shop:' });
  expect(of('probe')).toMatchObject({ state: 'bad', seen: containing('acquire failed: ') });
  expect(of('wake-ups')).toMatchObject({ state: 'unknown' });
  expect(verdict).toMatchObject({ efficiency: 'no', correctness: 'no' });
  const deaf = await examined(await storeOf(rules.filter((rule) => !rule.startsWith('&'))));
  expect(deaf.of('wake-ups')).toMatchObject({ state: 'warn', seen: containing('poll instead') });
  expect(deaf.verdict.correctness).toBe('yes');
});

describe('what is hidden', () => {
  it('is unknown to a user of an app, and never ok', async () => {
    const rules = await rulesOf('locks');
    await eventually(async () => {
      const { notOk, verdict, of } = await examined(await storeOf(rules));
      expect(notOk).toEqual(['persistence unknown']);
      expect(of('persistence').seen).toMatch(/^not known: .*NOPERM/);
      expect(verdict.text).toBe(
        'Efficiency: yes. Correctness: only with the fencing token checked at the resource, because it is unknown whether this server has written a grant to the disk when it answers (persistence).',
      );
    });
  });

  it('is everything about the server without INFO', async () => {
    const { of, verdict } = await examined(await storeOf((await rulesOf('doctor')).filter((rule) => rule !== '+info')));
    for (const id of ['version', 'role', 'eviction', 'persistence', 'replication']) expect([id, of(id).state]).toEqual([id, 'unknown']);
    expect(verdict).toMatchObject({ efficiency: 'unknown', correctness: 'unknown' });
  });
});

describe('the users that the doctor prints', () => {
  it('are those of the docs', async () => {
    const { rights = '' } = await examined(redisStore({ options: setting.server.connection }));
    expect(linesOf(rights, 'locks')).toBe(linesOf(read('docs/redis.md'), 'locks'));
    for (const name of ['viewer', 'operator']) expect(linesOf(rights, name)).toBe(linesOf(read('docs/operate.md'), name));
  });

  it('are enough on a Cluster', async () => {
    const node = await startClusterNode();
    setting.finally(() => node.stop());
    const cluster = [{ host: '127.0.0.1', port: node.port! }];
    const { rights = '' } = await examined(redisStore({ cluster }));
    const admin = node.client();
    await admin.call('ACL', 'SETUSER', ...linesOf(rights, 'locks').split(' ').slice(1));
    await admin.call('ACL', 'LOG', 'RESET');
    const redisOptions = { username: 'locks', password: 'secret' };
    const locks = new Locks(redisStore({ cluster, clusterOptions: { redisOptions } }), { logger: false });
    expect(await locks.using('key', () => 'result', { waitTimeout: 60_000 })).toBe('result');
    // ioredis goes on without it.
    expect((await refusedBy(admin)).filter((name) => name !== 'client|setname')).toEqual([]);
    await locks.close();
  });

  it('are enough for the doctor, and for keys with prefix and namespace only', async () => {
    const where = { keyPrefix: 'app[1]:', namespace: 'shop:' };
    const rules = await rulesOf('doctor', where);
    expect(rules.filter((rule) => rule.startsWith('~'))).toEqual(['~app\\[1\\]:shop:*', '~app\\[1\\]:{app\\[1\\]:shop:*']);
    await eventually(async () => {
      const { notOk } = await examined(await storeOf(rules, where.keyPrefix), { namespace: where.namespace });
      expect(notOk).toEqual([]);
    });
  });
});
