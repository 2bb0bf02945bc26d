// The steps of the Dockerfile, in folders of this machine: what the image lacks, the shop lacks here.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { eventually } from '../support/eventually.js';

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'image-'));
afterAll(() => rmSync(folder, { recursive: true }));
jest.setTimeout(600_000);

interface Stage {
  root: string;
  workdir: string;
  env: NodeJS.ProcessEnv;
  cmd: string[];
}

const instructions = readFileSync('Dockerfile', 'utf8')
  .replace(/\\\n/g, ' ')
  .split('\n')
  .filter((line) => /^[A-Z]/.test(line))
  .map((line) => ({ name: line.slice(0, line.indexOf(' ')), rest: line.slice(line.indexOf(' ') + 1).trim() }));

/** Runs all stages; resolves with the last one. */
async function build(): Promise<Stage> {
  const stages = new Map<string, Stage>();
  let stage: Stage | undefined;
  for (const { name, rest } of instructions) {
    if (name === 'FROM') {
      const title = /\sAS\s+(\S+)$/i.exec(rest)?.[1] ?? `stage ${stages.size}`;
      stage = { root: join(folder, title), workdir: '/', env: { NODE_ENV: undefined }, cmd: [] };
      stages.set(title, stage);
    }
    if (!stage) continue; // ARG before the first stage
    const at = (path: string) => join(stage!.root, path.startsWith('/') ? path : join(stage!.workdir, path));
    if (name === 'WORKDIR') mkdirSync(at((stage.workdir = rest)), { recursive: true });
    if (name === 'ENV') stage.env[rest.split('=')[0]!] = rest.split('=')[1];
    if (name === 'CMD') stage.cmd = JSON.parse(rest) as string[];
    if (name === 'COPY') copy(rest, stages, at);
    if (name === 'RUN') await run('sh', ['-c', rest], { cwd: at('.'), env: { ...process.env, ...stage.env }, maxBuffer: 2 ** 26 });
  }
  return stage!;
}

function copy(rest: string, stages: Map<string, Stage>, at: (path: string) => string): void {
  const from = /^--from=(\S+)\s+/.exec(rest);
  const paths = rest.slice(from?.[0].length ?? 0).split(/\s+/);
  const target = paths.pop()!;
  for (const path of paths) {
    const source = from ? join(stages.get(from[1]!)!.root, path) : path;
    cpSync(source, target.endsWith('/') ? join(at(target), basename(path)) : at(target), {
      recursive: true,
      filter: (file) => !file.endsWith('node_modules'),
    });
  }
}

it('the image has all that the shop needs to open and to sell', async () => {
  const { root, workdir, env, cmd } = await build();
  const [command, ...args] = cmd;
  const shop = spawn(command!, args, {
    cwd: join(root, workdir),
    env: { ...process.env, ...env, PORT: '0', STORE_URL: pathToFileURL(join(folder, 'files')).href },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    let output = '';
    shop.stdout.on('data', (data: Buffer) => (output += data.toString()));
    const url = await eventually(() => /open at (\S+)/.exec(output)![1]!);
    const answer = await fetch(`${url}/reduceStock`, { method: 'POST' });
    expect(await answer.json()).toEqual({ sku: 'apple', sold: true, left: 99 });
  } finally {
    shop.kill('SIGTERM');
    await once(shop, 'exit');
  }
});
