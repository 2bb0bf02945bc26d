import { GROUPS, isLossy, type Group } from '../faults/fault.js';
import { KINDS } from '../history/entry.js';
import type { OracleName } from '../oracles/oracle.js';
import type { Summary } from '../run/summary.js';
import { stores } from '../stores.js';

/** Promises, and the oracles that would see them broken. */
const INVARIANTS: readonly { title: string; oracles: readonly OracleName[]; needsMemory: boolean }[] = [
  { title: 'one holder (G2, G3)', oracles: ['overlap', 'lost update'], needsMemory: true },
  { title: 'fenced writes (G2)', oracles: ['fence'], needsMemory: false },
  { title: 'tokens grow (G2)', oracles: ['tokens'], needsMemory: false },
  { title: 'no false loss (G4–G6)', oracles: ['early loss'], needsMemory: true },
  { title: 'waits end in time (G8, G9)', oracles: ['liveness', 'latch'], needsMemory: false },
  { title: 'nothing left (G7)', oracles: ['nothing left'], needsMemory: false },
  { title: 'no errors of its own (G10)', oracles: ['trouble'], needsMemory: false },
];

const TITLES: Record<Group, string> = {
  process: 'processes killed, stopped, blocked',
  net: 'a bad network: delays, losses, cuts, late delivery',
  server: 'server stopped, its clients killed',
  rights: 'rights taken away for a while',
  memory: 'server out of memory for a while',
  restart: 'server killed and restarted',
  failover: 'failover that loses nothing',
  sentinel: 'failover by Sentinel that loses nothing',
  files: 'inboxes and drafts removed, litter of dead processes, swept early',
  clock: 'wall clocks of the apps jump',
  takeover: 'a replica promoted beside its master, which then hangs',
  'clock-member': 'wall clock of one member jumps by 40 s',
  loss: 'the store forgets: some or all of its records are deleted',
  'clock-server': 'wall clock of the server jumps by 40 s',
};

const TITLES_OF_STORES: Partial<Record<string, Partial<Record<Group, string>>>> = {
  cluster: { server: 'one master stopped, paused, its clients killed, scripts forgotten; slots moved', failover: '`CLUSTER FAILOVER`' },
  quorum: {
    net: 'a bad network to one member: delays, losses, cuts, late delivery',
    server: 'one member stopped, paused, its clients killed, scripts forgotten',
    restart: 'one member killed and restarted empty, with a quarantine',
  },
  'replica-acks': { server: 'master stopped, paused, its clients killed, scripts forgotten' },
  redis: {
    server: 'server stopped, paused, its clients killed, scripts forgotten',
    restart: 'server killed and restarted, `appendfsync always`',
    loss: 'the store forgets: FLUSHALL, DEL, empty restart, lossy failover',
  },
  postgres: { server: 'server stopped, its clients or listeners killed, rows or table locked, old rows deleted, table rewritten' },
  etcd: {
    net: 'a balancer that answers 502 for a while',
    server: 'one member, the leader or two of three stopped; old revisions compacted',
    restart: 'one member, or the leader, killed and restarted',
    failover: 'the leader moved (`move-leader`)',
  },
  zookeeper: {
    server: 'one member, the leader or two of three stopped',
    restart: 'one member, or the leader, of 3.9.6 killed and restarted',
    loss: 'members of 3.8.0 killed and restarted',
  },
  mysql: { server: 'server stopped, its clients killed, rows or table locked, old rows deleted, table rewritten' },
};

/** A row for each group of faults, a column for each store: whether each promise held for all kinds of lock. */
export function matrixOf(summaries: readonly Summary[]): string {
  const names = storesOf(summaries);
  const rows = groupsOf(summaries).map((group) => [TITLES[group], ...names.map((store) => cellOf(runsOf(summaries, group, store), group))]);
  const minutes = names.map((name) => Math.floor(sum(summaries.filter(({ store }) => store === name).map(({ seconds }) => seconds)) / 60));
  return markdown(['faults', ...names], [...rows, ['minutes of load', ...minutes.map(String)]]);
}

/** How often the faults of each group struck each store, and how often each kind of lock was held meanwhile. */
export function numbersOf(summaries: readonly Summary[]): string {
  const rows = storesOf(summaries).flatMap((store) =>
    groupsOf(summaries).flatMap((group) => {
      const runs = runsOf(summaries, group, store);
      if (runs.length === 0) return [];
      const struck = sum(runs.flatMap(({ faults }) => Object.values(faults)));
      const held = KINDS.map((kind) => sum(runs.map(({ kinds }) => kinds[kind]?.holdings ?? 0)));
      return [
        [
          store,
          TITLES_OF_STORES[store]?.[group] ?? TITLES[group],
          ...[sum(runs.map(({ seconds }) => seconds)), struck, ...held].map(String),
        ],
      ];
    }),
  );
  return markdown(['store', 'faults', 'seconds', 'struck', ...KINDS], rows);
}

function storesOf(summaries: readonly Summary[]): string[] {
  return Object.keys(stores).filter((name) => summaries.some(({ store }) => store === name));
}

function groupsOf(summaries: readonly Summary[]): Group[] {
  return GROUPS.filter((group) => summaries.some(({ groups }) => groups.includes(group)));
}

/** Runs of this group alone, whose faults struck: of several it is unknown which one did it. */
function runsOf(summaries: readonly Summary[], group: Group, store: string): Summary[] {
  const ofGroup = summaries.filter(({ store: name, groups }) => name === store && groups.length === 1 && groups[0] === group);
  return ofGroup.filter(({ faults }) => Object.keys(faults).length > 0);
}

function cellOf(runs: readonly Summary[], group: Group): string {
  if (runs.length === 0) return '–';
  const judged = INVARIANTS.filter(({ needsMemory }) => !(needsMemory && isLossy(group)));
  const broken = judged.filter(({ oracles }) => runs.some(({ violations }) => oracles.some((oracle) => violations[oracle] !== undefined)));
  if (broken.length > 0) return `**broken**: ${broken.map(({ title }) => title).join(', ')}`;
  return isLossy(group) ? 'tokens' : 'holds';
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function markdown(head: readonly string[], rows: readonly string[][]): string {
  const lines = [head, head.map(() => '---'), ...rows];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
