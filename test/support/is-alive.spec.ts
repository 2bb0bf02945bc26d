import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { eventually } from './eventually.js';
import { isAlive } from './is-alive.js';

it('takes a zombie for dead, as a process that its parent has not asked for', async () => {
  // The shell becomes a program that asks for no child.
  const parent = spawn('sh', ['-c', 'true & echo $!; exec cat'], { stdio: ['pipe', 'pipe', 'ignore'] });
  const [line] = (await once(parent.stdout.setEncoding('utf8'), 'data')) as [string];
  const pid = Number(line);
  await eventually(() => !isAlive(pid));
  expect(process.kill(pid, 0)).toBe(true);
  expect(isAlive(parent.pid!)).toBe(true);
  parent.stdin.end();
  await once(parent, 'close');
  expect(isAlive(parent.pid!)).toBe(false);
});
