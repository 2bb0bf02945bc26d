import { execFile, spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Io } from '../../lib/cli/command.js';
import { ndl as main } from '../../lib/cli/ndl.js';
import { eventually } from './eventually.js';

export interface CliResult {
  /** 128 + n after a signal */
  code: number;
  stdout: string;
  stderr: string;
}

export interface CliOptions {
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  /** of a process: another main.js */
  file?: string;
}

export interface RunningCli {
  readonly ended: Promise<CliResult>;
  stdout(): string;
  signal(signal: NodeJS.Signals): void;
  /** Resolves when its stdout or stderr matches. */
  says(pattern: RegExp): Promise<string>;
}

class Outputs {
  readonly texts = { stdout: '', stderr: '' };
  readonly stdout = (): string => this.texts.stdout;

  stream(name: 'stdout' | 'stderr'): { write(text: string): boolean } {
    return { write: (text) => Boolean((this.texts[name] += text)) };
  }

  readonly says = (pattern: RegExp): Promise<string> =>
    eventually(() => {
      const { stdout, stderr } = this.texts;
      const [found] = pattern.exec(stdout) ?? pattern.exec(stderr) ?? [];
      if (found === undefined) throw new Error(`it says\n${stdout}\n${stderr}`);
      return found;
    });
}

/** The command line in this process. Not for `run`, whose command has the stdout of the process, and not for config files, which Node has to import. */
export function startHere(args: readonly string[], { env = {}, cwd = tmpdir() }: CliOptions = {}): RunningCli {
  const outputs = new Outputs();
  const signals = new EventEmitter();
  const io = {
    stdin: { isTTY: false },
    stdout: outputs.stream('stdout'),
    stderr: outputs.stream('stderr'),
    env,
    cwd: () => cwd,
    once: (signal: string, listener: () => void) => signals.once(signal, listener),
  };
  const ended = main(args, io as unknown as Io).then((code) => ({ code, ...outputs.texts }));
  return { ended, stdout: outputs.stdout, says: outputs.says, signal: (signal) => void signals.emit(signal) };
}

export const ndlHere = (args: readonly string[], options?: CliOptions): Promise<CliResult> => startHere(args, options).ended;

/** The command line in processes of its own. To be called in a test file: what it leaves behind is ended after its tests. */
export function useCli() {
  const running = new Set<RunningCli>();
  let file = '';
  beforeAll(async () => void (file = join(await compiled(), 'cli/main.js')));
  afterAll(async () => {
    for (const each of running) each.signal('SIGKILL');
    await Promise.all([...running].map(({ ended }) => ended));
  });

  const start = (args: readonly string[], { env, cwd = tmpdir(), file: program = file }: CliOptions = {}): RunningCli => {
    const { REDIS_URL: _, ...ours } = process.env;
    const child = spawn(process.execPath, [program, ...args], { cwd, env: { ...ours, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    const outputs = new Outputs();
    for (const name of ['stdout', 'stderr'] as const) child[name].setEncoding('utf8').on('data', outputs.stream(name).write);
    const ended = new Promise<CliResult>((end) => {
      // Not `close`: a command that it has left behind would have its stdout.
      child.once('exit', (code, signal) => {
        running.delete(started);
        setImmediate(() => end({ code: code ?? (signal === 'SIGKILL' ? 137 : 128), ...outputs.texts }));
      });
    });
    const started = { ended, stdout: outputs.stdout, says: outputs.says, signal: (signal: NodeJS.Signals) => void child.kill(signal) };
    running.add(started);
    return started;
  };
  const ndl = (args: readonly string[], options?: CliOptions): Promise<CliResult> => start(args, options).ended;
  return { start, ndl, folder: () => resolve(file, '../..') };
}

/** The folder of the command line and of what it uses, compiled once for each state of lib. `npm run build` makes the same files, but takes a minute. */
async function compiled(): Promise<string> {
  const files = readdirSync('lib', { recursive: true, encoding: 'utf8' })
    .map((name) => join('lib', name))
    .filter((name) => /\.(ts|cjs)$/.test(name));
  const hash = createHash('sha256');
  for (const file of files.sort()) hash.update(file).update(readFileSync(file));
  const folder = resolve('.cache', `cli-${hash.digest('hex').slice(0, 16)}`);
  if (existsSync(folder)) return folder;
  const aside = `${folder}-${randomUUID()}`;
  const flags = ['--format=esm', '--platform=node', '--target=es2022', '--outbase=lib', `--outdir=${aside}`, '--loader:.cjs=copy'];
  await promisify(execFile)(resolve('node_modules/.bin/esbuild'), [...files, ...flags, '--log-level=warning']);
  try {
    renameSync(aside, folder);
    removeOldOnes();
  } catch (error) {
    if (!existsSync(folder)) throw error; // another process was first
    rmSync(aside, { recursive: true });
  }
  return folder;
}

/** Those of other states of lib, a day later. */
function removeOldOnes(): void {
  for (const name of readdirSync('.cache').filter((each) => each.startsWith('cli-'))) {
    const old = join('.cache', name);
    if (Date.now() - statSync(old).mtimeMs > 86_400_000) rmSync(old, { recursive: true, force: true });
  }
}

/** What a slow store adds to stderr after two seconds. */
export function withoutProgress(stderr: string): string {
  return stderr.replaceAll(/^\d+ keys so far …\n/gm, '');
}

/** Without what differs from run to run: times, hosts, processes, owners, tokens. */
export function normalised(text: string): string {
  return text
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<uuid>')
    .replaceAll(/\b([\w-]+)@[\w.-]+:\d+/g, '$1@<host>:<pid>')
    .replaceAll(/\b\d{16}\b/g, '<token>')
    .replaceAll(/\b\d+(?:\.\d+)? (ms|s|min)\b/g, '<time>')
    .replaceAll(/\d\d:\d\d:\d\d\.\d{3}/g, '<clock>')
    .replaceAll(/ {2,}/g, '  ')
    .replaceAll(/ +$/gm, '')
    .trimEnd();
}
