import { once } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';
import { join } from 'node:path';
import { DatabaseServer } from './database-process.js';
import { freePort, startOnPort } from './free-port.js';
import { programOf } from './services.js';

export interface StartEtcdOptions {
  /** more arguments, for example `['--quota-backend-bytes=16777216']` */
  args?: string[];
  /** a write reaches the disk before it answers, as in production; default: only the system, which is faster and survives `kill` */
  durable?: boolean;
}

/** Where a member listens, and which cluster it is one of. */
interface Member {
  readonly name: string;
  readonly port: number;
  readonly peerPort: number;
  /** as of `--initial-cluster` */
  readonly cluster: string;
}

/** A private cluster of one member: nobody else uses it, and it ends with this process, however this process ends. */
export async function startEtcd(options: StartEtcdOptions = {}): Promise<EtcdServer> {
  const program = await programOf('etcd');
  const peerPort = await freePort();
  return startOnPort('free', (port) => new EtcdServer(program, membersOf([[port!, peerPort]])[0]!, options));
}

/** Three members. */
export async function startEtcdCluster(options: StartEtcdOptions = {}): Promise<EtcdServer[]> {
  const program = await programOf('etcd');
  const ports: (readonly [number, number])[] = [];
  for (let index = 0; index < 3; index++) ports.push([await freePort(), await freePort()]);
  const members = membersOf(ports).map((member) => new EtcdServer(program, member, options));
  await Promise.all(members.map((member) => member.start()));
  return members;
}

/** A member that copies the data of a cluster of one, and does not vote. */
export async function startLearner(voter: EtcdServer): Promise<EtcdServer> {
  const [program, peerPort] = [await programOf('etcd'), await freePort()];
  const peerUrl = `http://127.0.0.1:${peerPort}`;
  const added = await voter.ask('/v3/cluster/member/add', { peerURLs: [peerUrl], isLearner: true });
  if (!added.ok) throw new Error(await added.text());
  const cluster = `${voter.member.cluster},learner=${peerUrl}`;
  return startOnPort('free', (port) => {
    return new EtcdServer(program, { name: 'learner', port: port!, peerPort, cluster }, { args: ['--initial-cluster-state=existing'] });
  });
}

/** Makes another member the leader, as `etcdctl move-leader` does. Rejects if nobody leads for now. */
export async function moveLeader(members: readonly EtcdServer[]): Promise<void> {
  const leads = await Promise.all(members.map((member) => member.leads()));
  const index = leads.indexOf(true);
  const target = await members[(index + 1) % members.length]!.status();
  const moved = await members[index]?.ask('/v3/maintenance/transfer-leadership', { targetID: target?.header?.member_id });
  if (!moved?.ok) throw new Error(`No leader was moved: ${(await moved?.text()) ?? 'nobody leads'}`);
}

function membersOf(ports: readonly (readonly [number, number])[]): Member[] {
  const cluster = ports.map(([, peerPort], index) => `m${index}=http://127.0.0.1:${peerPort}`).join();
  return ports.map(([port, peerPort], index) => ({ name: `m${index}`, port, peerPort, cluster }));
}

/** A member. */
export class EtcdServer extends DatabaseServer {
  readonly url: string;
  readonly data = join(this.folder, 'data');

  constructor(
    program: string,
    readonly member: Member,
    { args = [], durable = false }: StartEtcdOptions,
  ) {
    super('etcd', program);
    const { name, port, peerPort, cluster } = member;
    const isSafe = args.some((arg) => arg.startsWith('--cert-file'));
    this.url = `http${isSafe ? 's' : ''}://127.0.0.1:${port}`;
    const peerUrl = `http://127.0.0.1:${peerPort}`;
    this.args = [
      ...['--name', name, '--data-dir', this.data, '--initial-cluster', cluster],
      ...['--listen-client-urls', this.url, '--advertise-client-urls', this.url],
      ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl],
      // A new leader within half a second.
      ...['--heartbeat-interval=50', '--election-timeout=500', '--log-level=warn'],
      ...(durable ? [] : ['--unsafe-no-fsync']),
      ...args,
    ];
  }

  get port(): number {
    return this.member.port;
  }

  async leads(): Promise<boolean> {
    const status = await this.status();
    return status?.leader !== undefined && status.leader === status.header?.member_id;
  }

  /** `undefined`: it does not answer. */
  status(): Promise<{ leader?: string; header?: { member_id: string } } | undefined> {
    return this.ask('/v3/maintenance/status', {})
      .then((reply) => reply.json() as ReturnType<EtcdServer['status']>)
      .catch(() => undefined);
  }

  ask(path: string, body: object): Promise<Response> {
    return fetch(this.url + path, { method: 'POST', body: JSON.stringify(body), signal: AbortSignal.timeout(2_000) });
  }

  /** It knows a leader, and is ours: a stranger may have taken the port. */
  protected async ready(): Promise<boolean> {
    const options = { rejectUnauthorized: false, agent: false, signal: AbortSignal.timeout(1000) };
    const sent = this.url.startsWith('https') ? https.get(`${this.url}/health`, options) : http.get(`${this.url}/health`, options);
    const [response] = (await once(sent, 'response')) as [http.IncomingMessage];
    return (await response.toArray()).join('').includes('"health":"true"');
  }
}
