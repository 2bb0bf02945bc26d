// results/<name>.json keeps everything. The page for users, the goals of development and the charts are made from it.
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { percent } from '../measure/busy.mjs';
import { chartOf } from './chart.mjs';
import { judge } from './goals.mjs';
import { judgeServers, tableOfServers } from './servers.mjs';
import { judgeStores, tableOfStores } from './stores.mjs';
import { goalsOf, meaningOf, summaryOf, tableOf } from './table.mjs';

const folder = fileURLToPath(new URL('../results/', import.meta.url));

const fileOf = ({ id, network }) => `${id}${network === 'loopback' ? '' : `-${network.replace(' ', '')}`}.svg`;

/** Replaces the results of this workload; those of the others stay. */
export async function write(workload, run) {
  await mkdir(folder, { recursive: true });
  for (const file of await readdir(folder)) if (file.startsWith(`${workload}-`) && file.endsWith('.svg')) await rm(folder + file);
  await writeResults(workload, run, 0);
}

/** @param name of the benchmark. */
export async function writeResults(name, run, indentation = 1) {
  await writeFile(`${folder}${name}.json`, `${JSON.stringify(run, rounded, indentation)}\n`);
  await writePages();
}

/** Makes the pages and the charts again from the results that are there. */
export async function writePages() {
  for (const [path, text] of await pages()) await writeFile(path, text);
}

/** The pages and the charts that are not what the results make them. */
export async function outdatedPages() {
  const all = await Promise.all(
    (await pages()).map(async ([path, text]) => [path, text === (await readFile(path, 'utf8').catch(() => ''))]),
  );
  return all.flatMap(([path, isRight]) => (isRight ? [] : [path]));
}

/** Each with its path. */
async function pages() {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.json')).sort();
  const named = async (file) => [file.slice(0, -'.json'.length), JSON.parse(await readFile(folder + file, 'utf8'))];
  const { stores, cluster, quorum, ...workloads } = Object.fromEntries(await Promise.all(files.map(named)));
  const runs = Object.values(workloads);
  const servers = (cluster || quorum) && { cluster, quorum };
  return [
    ...runs.flatMap(({ tables }) => tables).flatMap((table) => [[folder + fileOf(table), chartOf(table)]].filter(([, chart]) => chart)),
    [`${folder}README.md`, page(runs) + (stores ? pageOfStores(stores) : '') + (servers ? pageOfServers(servers) : '')],
    [
      fileURLToPath(new URL('../goals.md', import.meta.url)),
      goals(runs) + (stores ? goalsOfStores(stores) : '') + (servers ? goalsOfServers(servers) : ''),
    ],
  ];
}

const rounded = (_key, value) => (typeof value === 'number' ? Number(value.toPrecision(7)) : value);

const page = (runs) =>
  [
    '# Results',
    '',
    'Written by `npm run bench`; [what the workloads and columns mean](../README.md). Compare within a line or a table only.',
    '',
    summaryOf(runs.flatMap(({ tables }) => tables)),
    ...runs.flatMap(({ title, tables, machine }) => [
      `## ${title}`,
      '',
      describe(machine),
      '',
      ...tables
        .filter(({ network }) => network === 'loopback')
        .flatMap((table) => [`![${table.chart.title}](${fileOf(table)})`, '', meaningOf(table), '']),
      '<details><summary>Tables, also with 1 ms of delay</summary>',
      '',
      ...tables.map(tableOf),
      '</details>',
      '',
    ]),
  ].join('\n');

const section = (title, ...parts) => ['', `## ${title}`, ...parts.flatMap((part) => ['', part]), ''].join('\n');

const goals = (runs) =>
  [
    '# Goals of development',
    '',
    'Written by `npm run bench` from the [results](results/README.md); `report/goals.mjs` lists the goals.',
    '',
    goalsOf(runs.flatMap(({ tables }) => judge(tables))),
  ].join('\n');

const pageOfStores = (stores) => section('The stores beside each other', describe(stores.machine), tableOfStores(stores));

const goalsOfStores = (stores) =>
  section(
    'Stores',
    'Written by `npm run bench -- stores --write`: medians of the ratios to the Redis store of the same round.',
    judgeStores(stores),
  );

const pageOfServers = (servers) =>
  section(
    'Several Redis servers over one',
    ...Object.entries(servers).flatMap(([name, run]) => (run ? [`\`${name}\`: ${run.machine ? describe(run.machine) : run.note}`] : [])),
    tableOfServers(servers),
  );

const goalsOfServers = (servers) =>
  section(
    'Several Redis servers',
    'Written by `npm run bench -- cluster --write` and `npm run bench -- quorum --write`: medians of the ratios to one server in the same round. `redlock 5`: over the same three servers. Where there is no range, only the median was kept.',
    judgeServers(servers),
  );

const describe = ({ date, cpu, cores, memory, system, node, redis, canPin, busy, isBusy }) =>
  `${date.slice(0, 10)}, ${cpu}, ${cores} cores, ${memory} GB, ${system}, Node ${node}, Redis ${redis}; ${percent(busy)} of the CPU in use before the run${
    isBusy ? ': **a busy machine**' : ''
  }${canPin ? '' : '; no `taskset`, so that no process had a core of its own'}.`;
