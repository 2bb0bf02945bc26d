import { randomBytes } from 'node:crypto';
import { StoreError } from '../../core/model/errors.js';
import type { StoreDoctor } from '../../core/store/store-doctor.js';
import type { CasChange, CasFound, CasRow, CasTable } from '../records/observed/cas.table.js';
import { BAD_VERSION, NO_NODE, NODE_EXISTS, PERSISTENT, storeErrorOf, type Stat } from './zookeeper.client.js';
import { type ZookeeperSession, type Step } from './zookeeper.session.js';
import { ZookeeperWakeUps } from './zookeeper.wakeups.js';

/** Rows that a sweep reads at a time. */
const PAGE = 100;

/** A node of a key. */
interface Row extends CasRow {
  /** The name of the node below it, which is new each time the node is made: the versions of a node that was deleted begin again. */
  readonly life: string;
  readonly number: number;
}

/** Records in ZooKeeper, a node for each key. A change is a transaction, with its messages. */
export class ZookeeperTable implements CasTable {
  readonly name = 'zookeeper';
  readonly storeId: string | undefined;
  readonly wakeUps: ZookeeperWakeUps;
  readonly doctor: StoreDoctor = {
    checks: async () => (await import('./operate/zookeeper.doctor.js')).zookeeperChecks(this.session),
  };
  private readonly rows: string;

  constructor(private readonly session: ZookeeperSession) {
    const { client, hosts, root } = session.target;
    // Where the user's client connects to is not known.
    this.storeId = client ? undefined : `zookeeper ${hosts} ${root}`;
    this.rows = `${root}/r`;
    this.wakeUps = new ZookeeperWakeUps(session);
  }

  get requestTimeout(): number {
    return this.session.requestTimeout;
  }

  get bus(): ZookeeperWakeUps['bus'] {
    return this.wakeUps.bus;
  }

  /** They are sent one after the other, without waiting for the answers. */
  exchange(changes: readonly CasChange[]): readonly Promise<CasFound>[] {
    if (changes.some(({ expected }) => typeof expected === 'string')) this.catchUp();
    return changes.map((change) => this.make(change));
  }

  /** The ensemble may have been restored from a copy while there was no connection. It does not show: the zxid of an election is larger than all before. */
  onReplaced(listener: () => void): void {
    this.session.onBreak(listener);
  }

  /** Its number is the count when the node of this process was written. A read has none. */
  async count(): Promise<number> {
    const count = countOf(await this.wakeUps.touch());
    if (count === undefined)
      throw new StoreError('ZooKeeper has had too many elections: its count is not exact any more.', { transient: false });
    return count;
  }

  async *keys(prefix: string): AsyncGenerator<string[]> {
    this.catchUp();
    yield (await this.session.children(this.rows)).flatMap(keyOf).filter((key) => key.startsWith(prefix));
  }

  async sweep(count: number, isOver: (row: CasRow) => boolean): Promise<void> {
    const names = await this.session.children(this.rows);
    for (let index = 0; index < names.length; index += PAGE) {
      await Promise.all(names.slice(index, index + PAGE).map((name) => this.sweepRow(`${this.rows}/${name}`, count, isOver)));
    }
    await this.wakeUps.sweep((stat) => (countOf(stat) ?? Infinity) <= count);
  }

  async close(): Promise<void> {
    await this.wakeUps.end();
    await this.session.close();
  }

  /** A member that is behind would answer a read with what was. It answers after a write that was sent before, and that one goes through the leader. */
  private catchUp(): void {
    void this.wakeUps.touch().catch(() => undefined);
  }

  private make(change: CasChange): Promise<CasFound> {
    const path = this.pathOf(change.key);
    if (change.expected === 'look') return this.look(path);
    return change.expected === 'touch' ? this.touch(path) : this.write(path, change, change.expected.version);
  }

  private async look(path: string): Promise<{ readonly written: false; readonly row: Row | undefined }> {
    const found = await this.session.data(path);
    if (!found) return { written: false, row: undefined };
    const [, life = '-', text = found.text] = /^([\w-]+) (.*)$/s.exec(found.text) ?? [];
    return { written: false, row: rowOf(life, text, found.stat) };
  }

  private async touch(path: string): Promise<CasFound> {
    const found = await this.look(path);
    if (!found.row) return found;
    const { life, text, number } = found.row;
    const outcome = await this.session.commit(this.steps(path, life, text, number));
    if (!outcome.isMade) return this.look(path);
    const row = rowOf(life, text, outcome.stat);
    return { written: false, row, revision: row.revision };
  }

  private async write(path: string, { text, messages }: CasChange, expected: string | undefined): Promise<CasFound> {
    const [life = randomBytes(9).toString('base64url'), version] = expected?.split('.') ?? [];
    const number = version === undefined ? undefined : Number(version);
    const steps = this.steps(path, life, text, number);
    // Anybody may have written the name of an inbox. One that is no name of a node would fail the change.
    let sent = messages.filter(({ inbox }) => /^[\w-]+$/.test(inbox));
    for (;;) {
      const outcome = await this.session.commit([...steps, ...sent.map(({ inbox, text: message }) => this.wakeUps.send(inbox, message))]);
      if (outcome.isMade) {
        const { version: made, revision } = rowOf(life, text, outcome.stat);
        return { written: true, version: made, revision };
      }
      const { failed, code } = outcome;
      // The process of that inbox has ended.
      if (failed >= steps.length && code === NO_NODE) sent = sent.filter((_, index) => index !== failed - steps.length);
      else if (number === undefined && code === NO_NODE) await this.session.make(this.rows);
      else if (code === NODE_EXISTS || code === BAD_VERSION || code === NO_NODE) return this.look(path);
      else throw storeErrorOf({ code });
    }
  }

  private async sweepRow(path: string, count: number, isOver: (row: CasRow) => boolean): Promise<void> {
    const { row } = await this.look(path);
    if (!row || (row.revision ?? Infinity) > count || !isOver(row)) return;
    await this.session.commit([
      (transaction) => transaction.remove(`${path}/${row.life}`, -1),
      (transaction) => transaction.remove(path, row.number),
    ]);
  }

  /** @param number the version that must be there; `undefined`: there must be no node. A new one has version 1, as the client takes 0 for any. */
  private steps(path: string, life: string, text: string, number: number | undefined): Step[] {
    const { acl } = this.session.target;
    const lifePath = `${path}/${life}`;
    const write: Step = (transaction) => transaction.setData(path, Buffer.from(`${life} ${text}`), number ?? -1);
    if (number !== undefined) return [(transaction) => transaction.check(lifePath, -1), write];
    return [
      ...[path, lifePath].map(
        (each): Step =>
          (transaction) =>
            transaction.create(each, Buffer.alloc(0), acl, PERSISTENT),
      ),
      write,
    ];
  }

  /** Encodes a key as the name of a node. Dots are encoded, too: `.` and `..` are no names. */
  private pathOf(key: string): string {
    return `${this.rows}/${encodeURIComponent(key).replaceAll('.', '%2E')}`;
  }
}

function rowOf(life: string, text: string, stat: Stat | undefined): Row {
  if (!stat) throw new StoreError('ZooKeeper: an answer without the state of a node', { transient: true });
  return { life, number: stat.version, version: `${life}.${stat.version}`, text, revision: countOf(stat) };
}

/** The count of writes is the zxid: 32 bits of the election, 32 of the write. `undefined`: too many elections for a number to tell two writes apart. */
function countOf({ mzxid }: Stat): number | undefined {
  const count = Number(mzxid.readBigUInt64BE());
  return Number.isSafeInteger(count) ? count : undefined;
}

/** None, if the name is not of ours. */
function keyOf(name: string): string[] {
  try {
    return [decodeURIComponent(name)];
  } catch {
    return [];
  }
}
