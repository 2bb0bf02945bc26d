import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { read } from '../support/markdown.js';

/** The folders of each package: the versions that the tests run against. */
const COPIES: Record<string, string[]> = {
  ioredis: ['ioredis/built', 'ioredis-v5/built'],
  '@redis/client': ['@redis/client/dist', 'redis-v6/node_modules/@redis/client/dist'],
  '@redis/client 6': ['redis-v6/node_modules/@redis/client/dist'],
  pg: ['pg/lib'],
  mysql2: ['mysql2/lib'],
  'node-zookeeper-client': ['node-zookeeper-client/index.js', 'node-zookeeper-client/lib'],
};
const PAGE = 'lib/stores/private-members.md';

const texts = new Map<string, string>();

/** All that a copy of a package runs. */
function textOf(copy: string): string {
  const known = texts.get(copy);
  if (known !== undefined) return known;
  const path = join('node_modules', copy);
  const files = copy.endsWith('.js') ? [path] : readdirSync(path, { recursive: true }).map((name) => join(path, String(name)));
  const text = files.filter((file) => file.endsWith('.js')).map((file) => readFileSync(file, 'utf8')).join('\n'); // prettier-ignore
  texts.set(copy, text);
  return text;
}

const rows = [...read(PAGE).matchAll(/^\| `([^`]+)`( \d+)? \| `(\w+)` \| `([^`]+)` \| [^|]+ \| `([^`]+)` \|$/gm)].map(
  ([, name = '', version = '', ...others]) => [name + version, ...others] as [name: string, member: string, file: string, test: string],
);

it('the page has a row for each member that is used', () => {
  expect(rows.length).toBe(read(PAGE).match(/^\| `/gm)!.length);
  expect(rows.length).toBeGreaterThanOrEqual(28);
  expect(new Set(rows.map(([name]) => name))).toEqual(new Set(Object.keys(COPIES)));
});

it.each(rows)('%s has a member %s, which %s uses', (name, member, file, test) => {
  const isWord = new RegExp(`\\b${member}\\b`);
  expect(read(`lib/${file}`)).toMatch(isWord);
  expect(existsSync(join('test', test))).toBe(true);
  // ZooKeeper's client has two folders, of which one has it.
  const copies = COPIES[name]!;
  const found = copies.filter((copy) => isWord.test(textOf(copy)));
  expect(found).toEqual(name === 'node-zookeeper-client' ? expect.arrayContaining([expect.any(String)]) : copies);
});
