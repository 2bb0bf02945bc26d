import { GROUPS, isLossy, type Group } from '../faults/fault.js';
import { KINDS } from '../history/entry.js';
import type { OracleName } from '../oracles/oracle.js';
import type { Summary } from '../run/summary.js';

/** What is promised, and the oracles that would see it broken. */
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
  redis: {
    server: 'server stopped, paused, its clients killed, scripts forgotten',
    restart: 'server killed and restarted, `appendfsync always`',
    loss: 'the store forgets: FLUSHALL, DEL, empty restart, lossy failover',
  },
  postgres: { server: 'server stopped, its clients or listeners killed, rows or table locked, old rows deleted, table rewritten' },
  mysql: { server: 'server stopped, its clients killed, rows or table locked, old rows deleted, table rewritten' },
};

const REASONS: Partial<Record<Group, string>> = {
  loss: 'does not: a store that has forgotten the holder gives the key to another one',
  'clock-server': 'does not: keys expire by that clock',
};

/** One row for each group of faults: which promises held for all kinds of lock, and how often each kind was held. */
export function tablesOf(summaries: readonly Summary[]): string {
  const stores = [...new Set(summaries.map(({ store }) => store))].sort();
  return stores
    .map((store) =>
      tableOf(
        store,
        summaries.filter((summary) => summary.store === store),
      ),
    )
    .join('\n\n');
}

function tableOf(store: string, summaries: readonly Summary[]): string {
  const groups = GROUPS.filter((group) => ofGroup(summaries, group).length > 0);
  const promises = groups.map((group) => [
    titleOf(store, group),
    ...INVARIANTS.map((invariant) => cellOf(ofGroup(summaries, group), group, invariant)),
  ]);
  const numbers = groups.map((group) => {
    const runs = ofGroup(summaries, group);
    const faults = sum(runs.flatMap(({ faults }) => Object.values(faults)));
    return [
      titleOf(store, group),
      ...[faults, ...KINDS.map((kind) => sum(runs.map(({ kinds }) => kinds[kind]?.holdings ?? 0)))].map(String),
    ];
  });
  return [
    `**${store}**`,
    markdown(['faults', ...INVARIANTS.map(({ title }) => title)], promises),
    'How often faults struck, and how often each kind of lock was held meanwhile:',
    markdown(['faults', 'struck', ...KINDS], numbers),
  ].join('\n\n');
}

function titleOf(store: string, group: Group): string {
  return TITLES_OF_STORES[store]?.[group] ?? TITLES[group];
}

/** Runs of this group alone: of several it could not be told which one did it. */
function ofGroup(summaries: readonly Summary[], group: Group): Summary[] {
  return summaries.filter(({ groups }) => groups.length === 1 && groups[0] === group);
}

function cellOf(runs: readonly Summary[], group: Group, { oracles, needsMemory }: (typeof INVARIANTS)[number]): string {
  if (needsMemory && isLossy(group)) return REASONS[group]!;
  const found = new Map<string, number>();
  for (const { violations } of runs) {
    for (const oracle of oracles) {
      for (const [kind, count] of Object.entries(violations[oracle] ?? {})) found.set(kind, (found.get(kind) ?? 0) + count);
    }
  }
  if (found.size === 0) return 'holds';
  return `**does not**: ${[...found]
    .sort()
    .map(([kind, count]) => `${kind} ×${count}`)
    .join(', ')}`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function markdown(head: readonly string[], rows: readonly string[][]): string {
  const lines = [head, head.map(() => '---'), ...rows];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
