// Follows docs/tutorial.md literally: runs its sh blocks, writes its ts blocks to the files that are named above them, and compares its text
// blocks with what was printed. One thing differs: `npm install` does nothing, because the packages are there already, the library as it is
// packed. `TUTORIAL_NEST=11` follows it with Nest 11, which makes CommonJS apps.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { blocksOf, read } from '../support/markdown.js';
import { openWorkshop, type Workshop } from './workshop.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';

const PAGE = 'docs/tutorial.md';
const lines = read(PAGE).split('\n');
const steps = blocksOf(PAGE).map((block) => ({ ...block, file: fileAbove(block.where) }));

let workshop: Workshop;
let redis: RedisServer;
let folder: string;
let printed = '';

jest.setTimeout(180_000); // a compiler runs in some of them

beforeAll(async () => {
  [workshop, redis] = await Promise.all([openWorkshop(Number(process.env.TUTORIAL_NEST ?? 12)), startRedis()]);
  folder = join(workshop.folder, 'empty');
  mkdirSync(folder);
  const npm = '#!/bin/sh\nif [ "$1" = install ]; then echo "$@" >> "$INSTALLS"; else PATH=${PATH#*:} exec npm "$@"; fi\n';
  mkdirSync(join(workshop.folder, 'bin'));
  writeFileSync(join(workshop.folder, 'bin/npm'), npm, { mode: 0o755 });
});

afterAll(async () => {
  workshop.remove();
  await redis.stop();
});

it.each(steps)('$where, a block of $language, is true', async ({ language, text, file }) => {
  if (language === 'sh') printed = await shell(text);
  else if (language === 'text') expect(printed.trim()).toBe(text);
  else write(file, text);
});

it('what is said to be installed and changed is', () => {
  const installs = readFileSync(join(workshop.folder, 'installs.txt'), 'utf8');
  expect(installs).toContain('nestjs-distributed-lock@latest');
  expect(readFileSync(join(folder, 'package.json'), 'utf8')).toContain('"ioredis"');
  const module = readFileSync(join(folder, 'src/app.module.ts'), 'utf8');
  for (const added of ['redisStore(', "namespace: 'shop", 'LockExceptionFilter']) expect(module).toContain(added);
  expect(readFileSync(join(folder, 'src/main.ts'), 'utf8')).toContain('app.enableShutdownHooks();');
});

/** The next block goes on in the folder that this one ends in. */
async function shell(script: string): Promise<string> {
  const where = join(workshop.folder, 'where.txt');
  const output = await workshop.run('sh', ['-e', '-c', `${script}\npwd > "${where}"`], {
    cwd: folder,
    env: {
      PATH: [join(workshop.folder, 'bin'), join(workshop.folder, 'node_modules/.bin'), process.env.PATH].join(delimiter),
      INSTALLS: join(workshop.folder, 'installs.txt'),
      REDIS_URL: redis.path ?? `redis://127.0.0.1:${redis.port}`,
    },
  });
  folder = readFileSync(where, 'utf8').trim();
  return output;
}

function write(file: string | undefined, text: string): void {
  if (file === undefined) throw new Error(`No line such as "\`src/stock.service.ts\`:" says where this goes:\n${text}`);
  expect(existsSync(folder)).toBe(true);
  writeFileSync(join(folder, file), `${text}\n`);
}

/** The file that the line above a block names. */
function fileAbove(where: string): string | undefined {
  const line = Number(where.split(':').at(-1));
  return /^`([^`]+)`:$/.exec(lines[line - 2] ?? '')?.[1];
}
