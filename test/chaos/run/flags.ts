import { parseArgs } from 'node:util';
import { GROUPS, SURVIVABLE, type Group } from '../faults/fault.js';
import { KINDS, type Kind } from '../history/entry.js';
import { stores } from '../stores.js';

export const HELP = `npm run nightly -- chaos [options]

  --seed <text>      repeats a run; default: a random one, which is printed
  --minutes <n>      default: 1
  --kind <names>     with commas: ${KINDS.join(',')}; default: all
  --faults <names>   with commas: ${GROUPS.join(',')};
                     default: all that a lease can survive; 'none': no fault
  --store <names>    with commas: ${Object.keys(stores).join(',')}; default: redis, and for --ci and --prove all
  --workers <n>      processes; default: 5, for --ci 3: on two slow cores, five and a Postgres reach a tenth of the holdings
  --each             each group of faults in a run of its own
  --break <name>     breaks the store on purpose, see breaks.ts
  --prove            runs each break, or the one of --break, and requires that its oracle sees it
  --ci               a fixed list of runs, one of each store but memory and ZooKeeper, 9 s each
  --report <file>    writes the results as JSON
  --keep             keeps the folders of the histories also when all is well`;

export interface Flags {
  seed: string;
  minutes: number;
  kinds: Kind[];
  groups: Group[];
  /** undefined: none was named */
  stores?: string[];
  workers: number;
  break?: string;
  report?: string;
  each: boolean;
  prove: boolean;
  ci: boolean;
  keep: boolean;
}

/** @throws {Error} that says which flag is wrong. */
export function readFlags(): Flags | 'help' {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000_000)) },
      minutes: { type: 'string', default: '1' },
      kind: { type: 'string', default: KINDS.join(',') },
      faults: { type: 'string', default: SURVIVABLE.join(',') },
      store: { type: 'string' },
      workers: { type: 'string' },
      break: { type: 'string' },
      report: { type: 'string' },
      each: { type: 'boolean', default: false },
      prove: { type: 'boolean', default: false },
      ci: { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return 'help';
  const { kind, faults, minutes, store, workers, ...others } = values;
  return {
    ...others,
    minutes: positive('minutes', minutes),
    kinds: namesOf('kind', kind, KINDS),
    groups: faults === 'none' ? [] : namesOf('faults', faults, GROUPS),
    stores: store === undefined ? undefined : namesOf('store', store, Object.keys(stores)),
    workers: positive('workers', workers ?? (values.ci ? '3' : '5')),
  };
}

function positive(flag: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new Error(`--${flag} must be a number above 0, not ${text}`);
  return value;
}

function namesOf<T extends string>(flag: string, text: string, known: readonly T[]): T[] {
  const names = text.split(',');
  const unknown = names.filter((name) => !(known as readonly string[]).includes(name));
  if (unknown.length > 0) throw new Error(`--${flag}: unknown ${unknown.join(', ')}; known are ${known.join(', ')}`);
  return known.filter((name) => names.includes(name));
}
