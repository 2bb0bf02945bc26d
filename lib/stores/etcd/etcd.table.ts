import type { StoreDoctor } from '../../core/store/store-doctor.js';
import { inParts } from '../../core/util/in-parts.js';
import type { CasChange, CasFound, CasRow, CasTable } from '../records/observed/cas.table.js';
import { base64, endOf, fromBase64, type EtcdClient } from './etcd.client.js';
import { EtcdWakeUps } from './etcd.wakeups.js';

/** Operations and bytes of one request. etcd takes 128 and 1.5 MB, unless it is set otherwise. */
const MOST_OPERATIONS = 100;
const MOST_BYTES = 500_000;
const PAGE = 500;

interface Header {
  readonly revision: string;
}
interface Row {
  readonly key: string;
  readonly value?: string;
  readonly mod_revision: string;
}
/** With its whole key, which others may have made of any bytes. */
type NamedRow = CasRow & { readonly key: Buffer };
interface RangeReply {
  readonly header: Header;
  readonly kvs?: readonly Row[];
  readonly more?: boolean;
}
interface TxnReply {
  readonly header: Header;
  readonly succeeded?: boolean;
  readonly responses?: readonly { readonly response_range?: RangeReply; readonly response_txn?: TxnReply }[];
}

/** Records in etcd. Changes that come together are one transaction, with one inside for each: some are made, and some are not. */
export class EtcdTable implements CasTable {
  readonly name = 'etcd';
  readonly storeId: string;
  readonly wakeUps: EtcdWakeUps;
  readonly doctor: StoreDoctor = {
    checks: async () => (await import('./operate/etcd.doctor.js')).etcdChecks(this.client, this.prefix),
  };

  constructor(
    private readonly client: EtcdClient,
    private readonly prefix: string,
  ) {
    this.storeId = ['etcd', ...client.endpoints, prefix].join(' ');
    this.wakeUps = new EtcdWakeUps(client, prefix);
  }

  get requestTimeout(): number {
    return this.client.requestTimeout;
  }

  get bus(): EtcdWakeUps['bus'] {
    return this.wakeUps.bus;
  }

  exchange(changes: readonly CasChange[]): readonly Promise<CasFound>[] {
    const replies = new Map<CasChange, Promise<CasFound>>();
    // A transaction that only reads goes to no log.
    const isLook = ({ expected }: CasChange): boolean => expected === 'look';
    const alike = [changes.filter(isLook), changes.filter((change) => !isLook(change))];
    for (const some of alike.flatMap((all) => inParts(all, [MOST_BYTES, MOST_OPERATIONS], sizesOf))) {
      const made = this.make(some);
      for (const [index, change] of some.entries())
        replies.set(
          change,
          made.then((found) => found[index]!),
        );
    }
    return changes.map((change) => replies.get(change)!);
  }

  count(): Promise<number> {
    const request = { key: this.keyOf(''), count_only: true };
    return this.client.ask('/v3/kv/range', request, ({ header }: RangeReply) => Number(revisionIn(header.revision)));
  }

  onReplaced(listener: (cluster: string) => void): void {
    this.client.onReply = listener;
  }

  async *keys(prefix: string): AsyncGenerator<string[]> {
    for await (const rows of this.pages(`r/${prefix}`, { keys_only: true }))
      yield rows.map(({ key }) => key.toString().slice(this.prefix.length + 2));
  }

  async sweep(revision: number, isOver: (row: CasRow) => boolean): Promise<void> {
    const page = { max_mod_revision: String(revision) };
    for await (const rows of this.pages('r/', page)) await this.remove(rows.filter(isOver));
    // The inboxes of processes that have ended.
    for await (const rows of this.pages('i/', { ...page, keys_only: true })) await this.remove(rows);
  }

  close(): Promise<void> {
    this.wakeUps.close();
    this.client.close();
    return Promise.resolve();
  }

  private make(changes: readonly CasChange[]): Promise<CasFound[]> {
    const steps = changes.map((change, index) => this.stepOf(change, index));
    const isLook = changes[0]!.expected === 'look';
    const whole = steps.length === 1 && !isLook ? steps[0] : { success: isLook ? steps : steps.map((step) => ({ request_txn: step })) };
    return this.client.ask('/v3/kv/txn', whole, (reply: TxnReply) => foundIn(reply, changes));
  }

  /** @param index in the request: each message has a key of its own. */
  private stepOf({ key: name, expected, text, messages }: CasChange, index: number): object {
    const key = this.keyOf(`r/${name}`);
    const look = { request_range: { key } };
    if (expected === 'look') return look;
    if (expected === 'touch') {
      const isThere = { key, target: 'MOD', result: 'GREATER', mod_revision: '0' };
      return { compare: [isThere], success: [{ request_put: { key, ignore_value: true } }, look] };
    }
    const puts = messages.map(({ inbox, text: message }, number) => ({
      request_put: { key: this.keyOf(`i/${inbox}/${index}.${number}`), value: base64(message) },
    }));
    return {
      compare: [{ key, target: 'MOD', result: 'EQUAL', mod_revision: expected.version ?? '0' }],
      success: [{ request_put: { key, value: base64(text) } }, ...puts],
      failure: [look],
    };
  }

  private async *pages(start: string, page: object): AsyncGenerator<readonly NamedRow[]> {
    const range_end = endOf(this.prefix + start);
    for (let key = this.keyOf(start); ;) {
      const request = { key, range_end, limit: PAGE, ...page };
      const { rows, more } = await this.client.ask('/v3/kv/range', request, ({ kvs = [], more }: RangeReply) => {
        return { rows: kvs.map((row): NamedRow => ({ key: Buffer.from(row.key, 'base64'), ...rowOf(row) })), more };
      });
      yield rows;
      if (!more || rows.length === 0) return;
      key = Buffer.concat([rows.at(-1)!.key, Buffer.of(0)]).toString('base64');
    }
  }

  /** Deletes rows that are still as they were seen. */
  private async remove(rows: readonly NamedRow[]): Promise<void> {
    for (let index = 0; index < rows.length; index += MOST_OPERATIONS) {
      const success = rows.slice(index, index + MOST_OPERATIONS).map(({ key: bytes, version }) => {
        const key = bytes.toString('base64');
        const compare = [{ key, target: 'MOD', result: 'EQUAL', mod_revision: version }];
        return { request_txn: { compare, success: [{ request_delete_range: { key } }] } };
      });
      await this.client.ask('/v3/kv/txn', { success });
    }
  }

  private keyOf(name: string): string {
    return base64(this.prefix + name);
  }
}

/** @throws {Error} if the reply lacks what a transaction of these changes has. */
function foundIn(reply: TxnReply, changes: readonly CasChange[]): CasFound[] {
  const version = revisionIn(reply.header.revision);
  const revision = Number(version);
  const isLook = changes[0]!.expected === 'look';
  return changes.map(({ expected }, index): CasFound => {
    const { succeeded, responses } = isLook || changes.length === 1 ? reply : reply.responses![index]!.response_txn!;
    if (succeeded && typeof expected === 'object') return { written: true, version, revision };
    // There is no row to be touched.
    if (expected === 'touch' && !succeeded) return { written: false, row: undefined, revision };
    const [row] = responses!.at(isLook ? index : -1)!.response_range!.kvs ?? [];
    return { written: false, row: row && rowOf(row), revision };
  });
}

function revisionIn(text: unknown): string {
  if (typeof text === 'string' && /^\d+$/.test(text)) return text;
  throw new Error('no revision');
}

function rowOf({ value = '', mod_revision }: Row): CasRow {
  const version = revisionIn(mod_revision);
  return { version, text: fromBase64(value), revision: Number(version) };
}

/** Bytes and operations in a transaction. */
function sizesOf({ key, text, messages }: CasChange): readonly number[] {
  return [200 + 2 * (key.length + text.length + messages.reduce((sum, message) => sum + message.text.length, 0)), 1 + messages.length];
}
