import { readdirSync } from 'node:fs';
import { read } from '../support/markdown.js';

/** For test/README.md: which contracts and mutants are named after a guarantee, and which oracles of the chaos runs judge it. */
export function guaranteesTable(): string {
  const names = [...read('docs/guarantees.md').matchAll(/^## (G\d+) (.*)$/gm)];
  const rows = names.map(([, id = '', name = '']) => `| ${id} ${name} | ${contractsOf(id)} | ${mutantsOf(id)} | ${oraclesOf(id)} |`);
  return ['| guarantee | contracts | tables of mutants | oracles of chaos |', '|---|---|---|---|', ...rows].join('\n');
}

function contractsOf(id: string): string {
  const files = readdirSync('test/contract').filter((file) => /\.contracts?\.ts$/.test(file));
  const named = files.filter((file) => new RegExp(`\\b${id}\\b`).test(read(`test/contract/${file}`)));
  return named.map((file) => `[${file.replace(/\.contracts?\.ts$/, '')}](contract/${file})`).join(', ');
}

function mutantsOf(id: string): string {
  const tables = readdirSync('test/mutants').filter((file) => file.endsWith('.diff'));
  const named = tables.filter((file) => new RegExp(`^${id}: `, 'm').test(read(`test/mutants/${file}`)));
  return named.map((file) => file.slice(0, -'.diff'.length)).join(', ');
}

function oraclesOf(id: string): string {
  const rows = [...read('test/chaos/README.md').matchAll(/^\| ([^|]+) \| [^|]+ \| ((?:G\d+(?:, )?)+) \|$/gm)];
  return rows
    .filter(([, , promises = '']) => promises.split(', ').includes(id))
    .map(([, oracle]) => oracle)
    .join(', ');
}
