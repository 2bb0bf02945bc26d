// Adds to a counter by compare-and-set, as often and as fast as it is told.
import { FileTable } from '../../../lib/stores/file/file.table.js';
import { clock } from '../../../lib/stores/file/file.host.js';
import { VOID, type Change, type Found } from '../../../lib/stores/records/record.table.js';

const [directory = '', times = '0'] = process.argv.slice(2);
const table = new FileTable(directory, 5_000);
const exchange = (change: Partial<Change>): Promise<Found> => {
  const rest = { key: 'counter', expected: undefined, record: null, notBefore: 0, tokens: 1, fence: 1, messages: [], isLazy: false };
  return table.exchange([{ ...rest, endsAt: clock() + 60_000, ...change }])[0]!;
};

process.once('message', () => void count());

async function count(): Promise<void> {
  let unknown = 0;
  for (let left = Number(times); left > 0;) {
    const { version, record } = await exchange({});
    try {
      if ((await exchange({ expected: version || VOID, record: String(Number(record) + 1) })).written) left--;
    } catch {
      unknown++;
      left--;
    }
  }
  process.send?.({ unknown });
  await table.close();
  process.disconnect();
}
process.send?.({ type: 'ready' });
