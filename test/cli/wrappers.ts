import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { eventually } from '../support/eventually.js';
import { useCli } from '../support/cli.js';
import { useRedis } from './setting.js';

/** A command that notices whether another one is at work. */
export const inside = resolve('test/cli/inside.sh');
export const sh = (script: string, ...args: string[]): string[] => ['--', 'sh', '-c', script, 'sh', ...args];

/** For tests of `ndl run`: processes of it, a Redis, and a folder in which the commands leave what they have seen. */
export function useWrappers() {
  const redis = useRedis();
  const cli = useCli();
  let folder = '';
  beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'ndl-run-'))));
  afterEach(() => rmSync(folder, { recursive: true }));
  const textOf = (name: string): string => (existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8').trim() : '');
  return {
    redis,
    ...cli,
    folderOf: () => folder,
    textOf,
    on: (...args: string[]): string[] => ['run', 'k', '--url', redis.url, ...args],
    /** The command is at work. */
    begins: () => eventually(() => textOf('pids') !== ''),
    /** Processes with the folder in their command line. */
    commands: (): string[] =>
      execFileSync('ps', ['-A', '-o', 'pid=,stat=,args='], { encoding: 'utf8' })
        .split('\n')
        .filter((line) => line.includes(folder) && !/^\s*\d+ Z/.test(line) && !line.includes('main.js')),
  };
}
