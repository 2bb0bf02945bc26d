import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Starts a script of scripts/; `npm test` has built what it runs. */
export function startDemo(script: string, args: string, env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, [`scripts/${script}`, '--no-build', ...args.split(' ')], { env: { ...process.env, ...env } });
  const run = { child, stdout: '', stderr: '', ended: once(child, 'close').then(([code]: unknown[]) => code) };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (run.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (run.stderr += text));
  return run;
}
