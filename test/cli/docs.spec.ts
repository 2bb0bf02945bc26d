// The outputs of docs/cli.md are those of the commands, and all options are in it.
import { readdirSync } from 'node:fs';
import type { Command } from '../../lib/cli/command.js';
import { EXIT } from '../../lib/cli/failure.js';
import { STORE_OPTIONS } from '../../lib/cli/open-store.js';
import { normalised, useCli } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { blocksOf, read } from '../support/markdown.js';
import { startHolder, useRedis } from './setting.js';

const redis = useRedis();
const { ndl } = useCli();
const page = read('docs/cli.md');

it('shows what the commands print', async () => {
  const [one, other] = await Promise.all([startHolder('redis', { url: redis.url }), startHolder('redis', { url: redis.url })]);
  one.send({ type: 'hold', key: 'cleaner-leader', label: 'Cleaner.lead' });
  await one.waitFor('holds');
  one.send({ type: 'hold', key: 'order:42', label: 'OrderService.pay' });
  const { owner } = await one.waitFor('holds');
  other.send({ type: 'hold', key: 'order:42', label: 'OrderService.cancel' });
  await eventually(async () => expect(await redis.server.client().zcard('{order:42}:queue')).toBe(1));
  const shown = blocksOf('docs/cli.md')
    .filter(({ text }) => text.startsWith('$ ndl ') && !text.startsWith('$ ndl watch'))
    .map(({ text }) => text.split('\n'));
  expect(shown.length).toBe(5);
  for (const [command = '', ...lines] of shown) {
    const words = [...command.slice('$ ndl '.length).matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word!);
    const args = words.map((word) => (word.startsWith('shop@') ? owner : word));
    const { stdout } = await ndl(args, { env: { REDIS_URL: redis.url } });
    expect(
      normalised(stdout)
        .split('\n')
        .map((line) => line.trim()),
    ).toEqual(
      normalised(lines.join('\n'))
        .split('\n')
        .map((line) => line.trim()),
    );
  }
  await Promise.all([one.kill(), other.kill()]);
}, 60_000);

it('has every command with its options, and every exit code', async () => {
  const commands: Record<string, Command> = {};
  for (const file of readdirSync('lib/cli')) {
    const module = (file === 'main.ts' ? {} : await import(`../../lib/cli/${file.replace(/\.ts$/, '')}`).catch(() => ({}))) as Record<
      string,
      unknown
    >;
    for (const [name, value] of Object.entries(module))
      if (value !== null && typeof value === 'object' && 'summary' in value) commands[name] = value as Command;
  }
  expect(Object.keys(commands).sort()).toEqual(expect.arrayContaining(['graph', 'leader', 'ls', 'release', 'run', 'show', 'watch']));
  const options = Object.values(commands).flatMap(({ flags }) => Object.keys(flags));
  const missing = [...options, ...Object.keys(STORE_OPTIONS)].filter((name) => !page.includes(`--${name}`));
  expect(missing).toEqual([]);
  expect(Object.keys(commands).filter((name) => !page.includes(`\`ndl ${name}`))).toEqual([]);
  expect(Object.values(EXIT).filter((code) => !new RegExp(`^\\| ${code} \\|`, 'm').test(page))).toEqual([]);
});
