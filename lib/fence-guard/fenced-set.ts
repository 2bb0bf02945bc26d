import { UnsupportedPrimitiveError } from '../core/model/errors.js';
import { fencedOff } from './fenced-error.js';

// KEYS: the value, and the largest token that has written it. ARGV: value, token. Replies nothing, or the token that is larger.
// Tokens are safe integers, which the numbers of Lua hold exactly.
const SCRIPT = `
local seen = redis.call('GET', KEYS[2])
if seen and tonumber(seen) > tonumber(ARGV[2]) then return seen end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('SET', KEYS[2], ARGV[2])
return ''
`;

/**
 * Sets a key of Redis, unless a later holder of the lock has set it. The largest token stays beside it, under the same name with `:fence`.
 *
 * @param redis has `eval` as ioredis has it.
 * @param token the `fencingToken` of the lease.
 * @throws {LockLostError} if a later holder was here. Its `cause` is a {@link FencedError}.
 * @throws {UnsupportedPrimitiveError} if the token is `null`.
 */
export async function fencedSet(
  redis: { eval(script: string, numberOfKeys: number, ...args: (string | number | Buffer)[]): Promise<unknown> },
  key: string,
  value: string | number | Buffer,
  token: number | null,
): Promise<void> {
  if (token === null) throw new UnsupportedPrimitiveError(`There is no fencing token to set "${key}" with.`, { key });
  // On Redis Cluster both must be on one node.
  const fence = /\{[^}]+\}/.test(key) ? `${key}:fence` : `{${key}}:fence`;
  const seen = (await redis.eval(SCRIPT, 2, key, fence, value, String(token))) as string;
  if (seen !== '') throw fencedOff(`"${key}" was not set: a later holder of its lock has set it.`, key, token, seen);
}
