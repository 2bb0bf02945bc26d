import type { DoctorCheck } from '../../../core/model/doctor-report.js';
import { checkOf, type Finding } from '../../../core/store/store-doctor.js';
import { textOf } from '../scripts/redis.replies.js';
import type { RedisNode } from './redis.node.js';
import { CHANNELS, RIGHTS } from './redis.users.js';

const KEY = 'nestjs-distributed-lock:doctor';
const CHANNEL = `${CHANNELS}inbox:doctor`;

/** How each command is called, for a try without effect. What is not here takes one key. */
const CALLS: Readonly<Record<string, readonly string[]>> = {
  eval: ['return 1', '1', 'KEY'],
  evalsha: ['0'.repeat(40), '1', 'KEY'],
  publish: [CHANNEL, 'message'],
  subscribe: [CHANNEL],
  unsubscribe: [CHANNEL],
  'pubsub|numsub': [CHANNEL],
  info: [],
  time: [],
  set: ['KEY', 'value'],
  pexpire: ['KEY', '1'],
  pexpireat: ['KEY', '1'],
  zadd: ['KEY', '1', 'member'],
  zrange: ['KEY', '0', '1'],
  zrevrange: ['KEY', '0', '1'],
  zrank: ['KEY', 'member'],
  zrem: ['KEY', 'member'],
  zscore: ['KEY', 'member'],
  zrangebyscore: ['KEY', '0', '1'],
  zrevrangebyscore: ['KEY', '1', '0'],
  hexists: ['KEY', 'field'],
  hmget: ['KEY', 'field'],
  hdel: ['KEY', 'field'],
  hset: ['KEY', 'field', 'value'],
  hincrby: ['KEY', 'field', '1'],
};

/** Whether this user may do what locks need, and a user without a password may not log in. */
export function rightsChecks(node: RedisNode, namespace: string): Promise<DoctorCheck>[] {
  return [
    checkOf({ id: 'rights', name: 'rights of this user', touches: ['G1', 'G8'] }, () => rightsOf(node, namespace)),
    checkOf({ id: 'login', name: 'password', touches: ['security'] }, () => loginOf(node)),
  ];
}

async function rightsOf(node: RedisNode, namespace: string): Promise<Finding> {
  const user = textOf(await node.call('ACL', 'WHOAMI'));
  const prefix = node.connection.keyPrefix + namespace;
  const missing = async (rights: readonly string[]): Promise<string[]> => {
    const names = await Promise.all(rights.map(async (right) => ((await isAllowed(node, user, right, `${prefix}${KEY}`)) ? [] : [right])));
    return names.flat();
  };
  const [mutex, sharing, wakeUps, info] = await Promise.all([
    missing(RIGHTS.mutex),
    missing(RIGHTS.sharing),
    missing(RIGHTS.wakeUps),
    missing(RIGHTS.info),
  ]);
  const all = [...mutex, ...sharing, ...wakeUps, ...info];
  if (all.length === 0) return { seen: `${user} may do all that locks need` };
  const seen = `${user} lacks ${all.join(', ')}`;
  const advice = [
    ...(mutex.length > 0 ? ['No lock works.'] : []),
    ...(sharing.length > 0 ? ['Read/write locks, semaphores and latches do not work.'] : []),
    ...(wakeUps.length > 0 ? ['Waiters poll.'] : []),
    'ndl doctor --acl prints the users that are needed.',
  ].join(' ');
  if (mutex.length > 0) return { state: 'bad', seen, advice, limits: { purpose: 'efficiency', because: 'this user may not use locks' } };
  return { state: sharing.length > 0 ? 'bad' : 'warn', seen, advice };
}

/** By a try without effect. @throws where the server has none (before Redis 7), or this user may not. */
async function isAllowed(node: RedisNode, user: string, right: string, key: string): Promise<boolean> {
  const [command = '', subcommand] = right.split('|');
  const args = (CALLS[right] ?? ['KEY']).map((arg) => (arg === 'KEY' ? key : arg));
  const words = [command, ...(subcommand === undefined ? [] : [subcommand]), ...args];
  // Others than OK say what is not allowed. What the server does not know is an error.
  return textOf(await node.call('ACL', 'DRYRUN', user, ...words)) === 'OK';
}

async function loginOf(node: RedisNode): Promise<Finding> {
  const [bind, guarded, user] = await Promise.all([
    node.setting('bind'),
    node.setting('protected-mode'),
    node.call('ACL', 'GETUSER', 'default'),
  ]);
  const fields = user as unknown[];
  const flags = fields[fields.indexOf('flags') + 1] as unknown[];
  const isOpen = flags.includes('on') && flags.includes('nopass');
  if (!isOpen) return { seen: 'the default user has one, or is off' };
  const hosts = bind.split(' ').map((host) => host.replace(/^-/, ''));
  const isPublic = bind === '' || !hosts.every((host) => /^(127\.|::1$|localhost$)/.test(host));
  if (!isPublic) return { seen: 'none, and only this machine can connect' };
  if (guarded === 'yes') return { seen: 'none, and protected-mode refuses other machines' };
  const advice = 'Set a password (requirepass, or users by ACL): who can connect can take and free every lock.';
  return { state: 'warn', seen: `none, and the server listens on ${bind || 'all addresses'}`, advice };
}
