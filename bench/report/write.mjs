// results/<workload>.json keeps everything; the page and the charts are made from it.
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { chartOf } from './chart.mjs';
import { judge } from './goals.mjs';
import { goalsOf, tableOf } from './table.mjs';

const folder = fileURLToPath(new URL('../results/', import.meta.url));

const fileOf = ({ id, network }) => `${id}${network === 'loopback' ? '' : `-${network.replace(' ', '')}`}.svg`;

/** Replaces what an earlier run said of these workloads; what it said of the others stays. */
export async function write(workload, run) {
  await mkdir(folder, { recursive: true });
  for (const file of await readdir(folder)) if (file.startsWith(`${workload}-`) && file.endsWith('.svg')) await rm(folder + file);
  for (const table of run.tables) {
    const chart = chartOf(table);
    if (chart) await writeFile(folder + fileOf(table), chart);
  }
  await writeFile(`${folder}${workload}.json`, `${JSON.stringify(run, rounded)}\n`);
  await writeFile(`${folder}README.md`, await page());
}

const rounded = (_key, value) => (typeof value === 'number' ? Number(value.toPrecision(7)) : value);

async function page() {
  const files = (await readdir(folder)).filter((file) => /^w\d\.json$/.test(file)).sort();
  const runs = await Promise.all(files.map(async (file) => JSON.parse(await readFile(folder + file, 'utf8'))));
  const machines = new Set(runs.map(({ machine, quick }) => describe(machine, quick)));
  const isOne = machines.size === 1;
  return [
    '# Results',
    '',
    'Written by `npm run bench`; [what the workloads and columns mean](../README.md). Compare within a table only: its rounds were run by turns.',
    '',
    ...(isOne ? [...machines, ''] : []),
    goalsOf(runs.flatMap(({ tables, quick }) => judge(tables, quick))),
    ...runs.flatMap(({ title, tables, machine, quick }) => [
      `## ${title}`,
      '',
      ...(isOne ? [] : [describe(machine, quick), '']),
      ...tables.flatMap((table) => [`![${table.chart.title}](${fileOf(table)})`, '', tableOf(table)]),
    ]),
  ].join('\n');
}

const describe = ({ date, cpu, cores, memory, system, node, redis, load }, quick) =>
  `${date.slice(0, 10)}, ${cpu}, ${cores} cores, ${memory} GB, ${system}, Node ${node}, Redis ${redis}; load before the run ${load}${
    quick ? '; **a quick run: too small for conclusions**' : ''
  }.`;
