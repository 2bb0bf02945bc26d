import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { eventually } from './eventually.js';

const COMPILED = ['cli', 'core', 'primitives', 'stores', 'telemetry'];

export interface CliResult {
  /** 128 + n after a signal */
  code: number;
  stdout: string;
  stderr: string;
}

export interface CliOptions {
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  /** another main.js */
  file?: string;
}

export interface RunningCli {
  readonly pid: number;
  readonly ended: Promise<CliResult>;
  stdout(): string;
  stderr(): string;
  signal(signal: NodeJS.Signals): void;
  /** Resolves when its stdout or stderr matches. */
  says(pattern: RegExp, within?: number): Promise<string>;
}

/**
 * The command line of the library as it is now, in processes of its own. `npm run build` makes the same files, but takes a minute.
 * To be called in a test file: it is compiled before its tests, and removed after them.
 */
export function useCli(): { start(args: readonly string[], options?: CliOptions): RunningCli; ndl: Ndl; readonly file: string } {
  const folder = resolve('.cache', `cli-${randomUUID()}`);
  const file = join(folder, 'cli/main.js');
  const running = new Set<RunningCli>();
  beforeAll(() => compile(folder), 60_000);
  afterAll(async () => {
    for (const each of running) each.signal('SIGKILL');
    await Promise.all([...running].map(({ ended }) => ended));
    rmSync(folder, { recursive: true, force: true });
  });

  const start = (args: readonly string[], { env, cwd, file: program = file }: CliOptions = {}): RunningCli => {
    const { REDIS_URL: _, ...ours } = process.env;
    const child = spawn(process.execPath, [program, ...args], {
      cwd: cwd ?? folder,
      env: { ...ours, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    const ended = new Promise<CliResult>((end) => {
      // Not `close`: a command that it has left behind would have its stdout.
      child.once('exit', (code, signal) => {
        running.delete(started);
        setImmediate(() => end({ code: code ?? (signal === 'SIGKILL' ? 137 : 128), stdout, stderr }));
      });
    });
    const started: RunningCli = {
      pid: child.pid!,
      ended,
      stdout: () => stdout,
      stderr: () => stderr,
      signal: (signal) => void child.kill(signal),
      says: (pattern, within = 20_000) =>
        eventually(
          () => {
            const [found] = pattern.exec(stdout) ?? pattern.exec(stderr) ?? [];
            if (found === undefined) throw new Error(`it says\n${stdout}\n${stderr}`);
            return found;
          },
          { within },
        ),
    };
    running.add(started);
    return started;
  };
  return { start, ndl: (args, options) => start(args, options).ended, file };
}

type Ndl = (args: readonly string[], options?: CliOptions) => Promise<CliResult>;

async function compile(folder: string): Promise<void> {
  const files = COMPILED.flatMap((part) =>
    readdirSync(join('lib', part), { recursive: true, encoding: 'utf8' }).map((name) => join('lib', part, name)),
  ).filter((name) => /\.(ts|cjs)$/.test(name));
  const flags = [
    '--format=esm',
    '--platform=node',
    '--target=es2022',
    '--outbase=lib',
    `--outdir=${folder}`,
    '--loader:.cjs=copy',
    '--log-level=warning',
  ];
  await promisify(execFile)(resolve('node_modules/.bin/esbuild'), [...files, 'lib/locks.ts', ...flags]);
}

/** What a busy machine adds to stderr after two seconds. */
export function withoutProgress(stderr: string): string {
  return stderr.replaceAll(/^\d+ keys so far …\n/gm, '');
}

/** Without what differs from run to run: times, hosts, processes, owners, tokens. */
export function normalised(text: string): string {
  return text
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<uuid>')
    .replaceAll(/\b([\w-]+)@[\w.-]+:\d+/g, '$1@<host>:<pid>')
    .replaceAll(/\b\d{16}\b/g, '<token>')
    .replaceAll(/\b\d+ (ms|s|min)\b/g, '<time>')
    .replaceAll(/\d\d:\d\d:\d\d\.\d{3}/g, '<clock>')
    .replaceAll(/ {2,}/g, '  ')
    .trimEnd();
}
