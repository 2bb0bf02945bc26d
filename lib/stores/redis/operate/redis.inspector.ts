import type { KeyKind } from '../../../core/model/key-report.js';
import { keptBy, ownerOf, partsOf } from '../../../core/model/owner.js';
import type { HolderState, Inspector, KeyState, SeizeRequest, WaiterState } from '../../../core/store/inspector.js';
import type { LeaseDriver } from '../../../core/store/lease-driver.js';
import { HOUR, idle } from '../../../core/util/clock.js';
import type { RedisClient } from '../connection/redis.client.js';
import type { RedisConnection } from '../connection/redis.connection.js';
import { globOf, integerOf, isYes, listOf, lockOfName, millisecondsOf, textOf, withFenceAndQueue } from '../redis.values.js';
import { lua, RedisScript } from '../scripts/redis.script.js';

const WHOLE = 1_000_000_000;
/** Added to the score of a queue entry of rank 1. */
const RANK = 2 ** 52;
/** Keys that the server looks at in one call of SCAN: about a millisecond's work. */
const SCAN_COUNT = 1000;
/** Milliseconds between two calls of SCAN. Without a pause, other clients would wait for them. */
const SCAN_PAUSE = 1;
const MOST_NOTES = 1000;
const AUDIT = 'nestjs-distributed-lock:audit';
/** Milliseconds for which notes are kept after the last one: 30 days. */
const AUDIT_TIME = 30 * 24 * HOUR;

/** Shows and frees the keys of one Redis. */
export class RedisInspector implements Inspector {
  private readonly looks: RedisScript<KeyState>;
  private readonly seizures: RedisScript<boolean>;

  /** @param sharing a driver of locks that several hold. */
  constructor(
    private readonly connection: RedisConnection,
    private readonly sharing: LeaseDriver,
  ) {
    this.looks = new RedisScript(connection, lua('inspect/look'), withFenceAndQueue, stateOf, { largest: 64 });
    this.seizures = new RedisScript(connection, lua('inspect/seize'), withFenceAndQueue, isYes);
  }

  inspect(keys: readonly string[]): Promise<KeyState[]> {
    // What cannot be a lock throws here, before any request is made.
    for (const key of keys) withFenceAndQueue(key, this.connection.keyPrefix);
    const states = keys.map((key) => this.looks.add(key, []));
    this.looks.flush();
    return Promise.all(states);
  }

  /** Each lock that was used within the fenceTimeout has a fence, and each that is waited for a queue: no key of another program is read to find them. */
  async *keys(prefix: string, latches: boolean): AsyncGenerator<readonly string[]> {
    const { client, keyPrefix } = this.connection;
    // A Cluster client knows its nodes once it is connected.
    await this.connection.request((connected) => connected.call('TIME'));
    const nodes = client.isCluster ? (client.nodes?.('master') ?? []) : [client];
    const start = keyPrefix + prefix;
    for (const node of nodes) {
      // A name is `{key}:fence`, or `key::fence` where the key has a hash tag.
      for await (const names of this.scan(node, `*${globOf(start)}*:[fq][eu][ne][cu]e`)) {
        yield names.map((name) => lockOfName(name, keyPrefix)).filter((key) => key?.startsWith(prefix)) as string[];
      }
      if (!latches) continue;
      for await (const names of this.scan(node, `${globOf(start)}*`, 'hash')) yield names.map((name) => name.slice(keyPrefix.length));
    }
  }

  async seize({ key, kind, owner, phase, token, keepFor }: SeizeRequest): Promise<boolean> {
    if (kind === 'mutex') return this.seizures.ask(key, [owner, token ?? '', keepFor]);
    // An owner is one tenure, which nobody else can have by now.
    const share = phase === 'kept' ? { key, owner: keptBy(owner), keepFor: 0 } : { key, owner, keepFor };
    return (await this.sharing.release(share)) === 'released';
  }

  async note(line: string): Promise<void> {
    await this.connection.request((client) => client.call('XADD', AUDIT, 'MAXLEN', '~', MOST_NOTES, '*', 'what', line));
    await this.connection.request((client) => client.call('PEXPIRE', AUDIT, AUDIT_TIME));
  }

  private async *scan(node: RedisClient, pattern: string, type?: string): AsyncGenerator<readonly string[]> {
    for (let cursor = '0'; ; await idle(SCAN_PAUSE, [], true)) {
      const args = [cursor, 'MATCH', pattern, 'COUNT', SCAN_COUNT, ...(type === undefined ? [] : ['TYPE', type])];
      const reply = await this.connection.request((client) => (client.isCluster ? node : client).call('SCAN', ...args));
      const [next, names] = listOf(reply, 2);
      yield listOf(names).map(textOf);
      cursor = textOf(next);
      if (cursor === '0') return;
    }
  }
}

function stateOf(reply: unknown, key: string): KeyState {
  const [now, type, left, token, body, count, entries, inboxes] = listOf(reply, 8);
  const at = integerOf(now);
  const remaining = millisecondsOf(left) < 0 ? null : millisecondsOf(left);
  const fencingToken = tokenOf(token);
  const waiters = waitersOf(listOf(entries), listOf(inboxes));
  const others = listOf(entries).length / 2 - waiters.length;
  const known = { key, at, fencingToken, remaining, waiters, waiterCount: integerOf(count) - others };
  return { ...known, holders: [], holderCount: 0, ...holdingOf(textOf(type), listOf(body), { at, remaining, fencingToken }) };
}

/** Others may have written to a name that looks like that of a fence. */
function tokenOf(reply: unknown): number | null {
  const token = Number(reply);
  return reply !== '' && Number.isSafeInteger(token) ? token : null;
}

type Known = Pick<KeyState, 'at' | 'remaining' | 'fencingToken'>;
type Holding = { readonly kind: KeyKind } & Partial<KeyState>;

function holdingOf(type: string, body: readonly unknown[], known: Known): Holding {
  if (type === 'none') return { kind: 'free' };
  if (type === 'string') return mutexOf(textOf(body[0]), known);
  if (body.length === 0) return { kind: 'foreign' };
  if (type === 'zset') return sharedOf(body, known);
  return { kind: 'count-down latch', count: integerOf(body[0]), waiterCount: integerOf(body[1]) };
}

function mutexOf(value: string, { remaining, fencingToken }: Known): Holding {
  const owner = ownerOf(value) ?? '';
  // The value of the classic recipe may be a secret of its program.
  if (!partsOf(owner)) return { kind: 'foreign' };
  const since = fencingToken === null ? null : Math.floor(fencingToken / 1000);
  const holder = { owner, phase: phaseOf(value), remaining, since, permits: Infinity };
  return { kind: 'mutex', holders: [holder], holderCount: 1 };
}

function sharedOf([name, count, ...fields]: readonly unknown[], { at }: Known): Holding {
  const [, kind, permits] = /^(.*) (\d+)$/.exec(textOf(name)) ?? [];
  const holders: HolderState[] = [];
  for (let i = 0; i < fields.length; i += 3) {
    const [member, ends, taken] = fields.slice(i, i + 3);
    const value = textOf(member);
    const owner = ownerOf(value) ?? value;
    holders.push({ owner, phase: phaseOf(value), remaining: millisecondsOf(ends) - at, since: null, permits: permitsOf(integerOf(taken)) });
  }
  const all = permitsOf(Number(permits));
  return { kind: kind as KeyKind, ...(all < Infinity && { permits: all }), holders, holderCount: integerOf(count) };
}

function waitersOf(entries: readonly unknown[], inboxes: readonly unknown[]): WaiterState[] {
  const gone = new Set(inboxes.filter((_, index) => String(inboxes[index + 1]) === '0'));
  const waiters: WaiterState[] = [];
  for (let i = 0; i < entries.length; i += 2) {
    const [owner = '', inbox = '', , ...rest] = textOf(entries[i]).split('\n');
    const [, permits] = /^(\d+) (read\/write lock|semaphore)$/.exec(rest[0] ?? '') ?? [];
    const holding = permits === undefined ? rest : rest.slice(1);
    const score = Number(entries[i + 1]);
    if (!partsOf(owner) || !Number.isFinite(score)) continue;
    const since = Math.floor((score >= RANK ? score - RANK : score) / 1000);
    const count = permits === undefined ? Infinity : permitsOf(Number(permits));
    waiters.push({ owner, since, permits: count, holding, isHeard: !gone.has(inbox) });
  }
  return waiters;
}

function phaseOf(value: string): 'held' | 'kept' {
  return ownerOf(value) === value ? 'held' : 'kept';
}

function permitsOf(count: number): number {
  return count >= WHOLE ? Infinity : count;
}
