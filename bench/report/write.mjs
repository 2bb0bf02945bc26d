// results/<workload>.json keeps everything; the page and the charts are made from it.
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { percent } from '../measure/busy.mjs';
import { chartOf } from './chart.mjs';
import { judge } from './goals.mjs';
import { detailsOf, goalsOf, tableOf } from './table.mjs';

const folder = fileURLToPath(new URL('../results/', import.meta.url));

const fileOf = ({ id, network }) => `${id}${network === 'loopback' ? '' : `-${network.replace(' ', '')}`}.svg`;

/** Replaces the results of this workload; those of the others stay. */
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
  return [
    '# Results',
    '',
    'Written by `npm run bench`; [what the workloads and columns mean](../README.md). Compare within a table only: its rounds were run by turns.',
    '',
    goalsOf(runs.flatMap(({ tables }) => judge(tables))),
    ...runs.flatMap(({ title, tables, machine }) => [
      `## ${title}`,
      '',
      describe(machine),
      '',
      ...tables.flatMap((table) => [`![${table.chart.title}](${fileOf(table)})`, '', tableOf(table), detailsOf(table)]),
    ]),
  ].join('\n');
}

const describe = ({ date, cpu, cores, memory, system, node, redis, canPin, busy, isBusy }) =>
  `${date.slice(0, 10)}, ${cpu}, ${cores} cores, ${memory} GB, ${system}, Node ${node}, Redis ${redis}; ${percent(busy)} of the CPU in use before the run${
    isBusy ? ': **a busy machine**' : ''
  }${canPin ? '' : '; no `taskset`, so that no process had a core of its own'}.`;
