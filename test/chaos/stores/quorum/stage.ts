import { startRedis, type RedisServer } from '../../../support/redis-server.js';
import type { TcpProxy } from '../../../support/tcp-proxy.js';
import { startClock } from '../../clock/clock.js';
import { startProxies } from '../proxies.js';
import { adminOf } from '../redis/admins.js';
import { leftoversOf } from '../redis/leftovers.js';
import type { Leftover, Stage, StageOptions } from '../store.js';
import { quorumFaults } from './faults.js';
import { QUARANTINE, type QuorumTarget } from './worker.js';

const MEMBERS = 3;

/** Redis servers that keep nothing through a crash. Each worker sees one of them through a proxy, so that its network can fail for a minority only. */
export class QuorumStage implements Stage {
  readonly faults = quorumFaults;
  readonly change = 'evalsha';

  constructor(
    readonly members: readonly RedisServer[],
    readonly proxies: readonly TcpProxy[],
    /** says by how many ms the clock of one member is wrong */
    readonly setClock: (ms: number) => void,
  ) {}

  target(slot: number): QuorumTarget {
    const proxied = slot % MEMBERS;
    return { members: this.members.map(({ connection }, index) => (index === proxied ? this.proxies[slot]!.connection : connection)) };
  }

  async heal(): Promise<void> {
    this.setClock(0);
    for (const member of this.members) await member.resume();
  }

  async leftovers(pidsOfKilled: ReadonlySet<number>): Promise<Leftover[]> {
    const all = await Promise.all(this.members.map((member) => leftoversOf(adminOf(member), pidsOfKilled)));
    return all.flat();
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.stop()));
  }
}

export async function startStage(options: StageOptions): Promise<QuorumStage> {
  const clock = options.groups.includes('clock-member') ? await startClock() : undefined;
  const start = (_: unknown, index: number): Promise<RedisServer> =>
    startRedis({ port: 'free', args: ['--enable-debug-command', 'yes'], env: index === 0 ? clock?.env : undefined });
  const members = await Promise.all(Array.from({ length: MEMBERS }, start));
  await Promise.all(members.map(age));
  const proxies = await startProxies(options, (slot) => members[slot % MEMBERS]!.port!);
  return new QuorumStage(members, proxies, clock?.set ?? (() => undefined));
}

/** Makes the server vote at once, though it has just been started. */
async function age(member: RedisServer): Promise<void> {
  const client = member.client();
  const [, run] = /run_id:(\w+)/.exec(await client.info('server'))!;
  const [seconds] = await client.time();
  await client.set('nestjs-distributed-lock:since', `${run} ${1_000 * Number(seconds) - QUARANTINE}`);
  client.disconnect();
}
