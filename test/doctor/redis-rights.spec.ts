// What the doctor says to Redis users that may not do everything.
import { redisStore } from 'nestjs-distributed-lock/redis';
import { eventually } from '../support/eventually.js';
import { read } from '../support/markdown.js';
import { useRedis } from '../stores/redis/setting.js';
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

/** The rules of docs/redis.md for a user of an app, and for the doctor, without the password. */
const line = (name: string): string[] => new RegExp(`^${name} (.+)$`, 'm').exec(read('docs/redis.md'))![1]!.split(' ');
const ofApp = line('user locks').filter((rule) => rule !== 'on' && !rule.startsWith('>'));
const ofDoctor = [...ofApp, ...line('doctor')];

const containing = (text: string) => expect.stringContaining(text) as string;

it('a user who lacks the keys of a namespace, or the channels, is seen by the lock that is tried', async () => {
  const elsewhere = ofDoctor.map((rule) => (rule === '~*' ? '~other:*' : rule));
  const { of, verdict } = await examined(await storeOf(elsewhere), { namespace: 'shop:' });
  expect(of('probe')).toMatchObject({ state: 'bad', seen: containing('acquire failed: ') });
  expect(of('wake-ups')).toMatchObject({ state: 'unknown' });
  expect(verdict).toMatchObject({ efficiency: 'no', correctness: 'no' });
  const deaf = await examined(await storeOf(ofDoctor.filter((rule) => !rule.startsWith('&'))));
  expect(deaf.of('wake-ups')).toMatchObject({ state: 'warn', seen: containing('poll instead') });
  expect(deaf.verdict.correctness).toBe('yes');
});

describe('what is hidden', () => {
  it('is unknown to a user of an app, and never ok', async () => {
    await eventually(async () => {
      const { notOk, verdict, of } = await examined(await storeOf(ofApp));
      expect(notOk).toEqual(['persistence unknown']);
      expect(of('persistence').seen).toMatch(/^not known: .*NOPERM/);
      expect(verdict.text).toBe(
        'Efficiency: yes. Correctness: only with the fencing token checked at the resource, because it is unknown whether this server has written a grant to the disk when it answers (persistence).',
      );
    });
  });

  it('is everything about the server without INFO', async () => {
    const { of, verdict } = await examined(await storeOf(ofDoctor.filter((rule) => rule !== '+info')));
    for (const id of ['version', 'role', 'eviction', 'persistence', 'replication']) expect([id, of(id).state]).toEqual([id, 'unknown']);
    expect(verdict).toMatchObject({ efficiency: 'unknown', correctness: 'unknown' });
  });
});

it('the rules of docs/redis.md are enough for the doctor, and for the keys of a prefix and a namespace only', async () => {
  const keys = /`(~app:\S+ ~app:\S+)`/.exec(read('docs/redis.md'))![1]!.split(' ');
  const rules = [...ofDoctor.filter((rule) => rule !== '~*'), ...keys];
  await eventually(async () => {
    const { notOk } = await examined(await storeOf(rules, 'app:'), { namespace: 'shop:' });
    expect(notOk).toEqual([]);
  });
});
