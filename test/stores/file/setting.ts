import { FileTable } from '../../../lib/stores/file/file.table.js';
import type { Found } from '../../../lib/stores/records/record.table.js';

interface LatchRecord {
  readonly waiters?: Readonly<Record<string, string>>;
}

/** What there is in a directory of locks. */
export class FileKeys {
  constructor(private readonly directory: string) {}

  /** The keys that are taken, queued for, or a latch. */
  async inUse(): Promise<string[]> {
    const names: string[] = [];
    for await (const some of this.table.keys('')) names.push(...some);
    const found = await Promise.all(names.map((key) => this.look(key)));
    return names.filter((_, index) => found[index]!.record !== null);
  }

  /** Those who are noted to wait for a latch. */
  async waitersOf(key: string): Promise<string[]> {
    const { record } = await this.look(key);
    return Object.keys((JSON.parse(record ?? '{}') as LatchRecord).waiters ?? {});
  }

  private get table(): FileTable {
    return new FileTable(this.directory, 1000);
  }

  private async look(key: string): Promise<Found> {
    const { table } = this;
    const change = { key, expected: undefined, record: null, endsAt: 0, notBefore: 0, tokens: 0, fence: 0, messages: [], isLazy: true };
    const found = await table.exchange([change])[0]!;
    await table.close();
    return found;
  }
}
