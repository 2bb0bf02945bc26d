// Starts two instances, kills the one that leads, and shows that the other one takes over.
import { fork } from 'node:child_process';

const instances = [1, 2].map(() => fork(new URL('main.js', import.meta.url), { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] }));
for (const { stdout } of instances) stdout!.pipe(process.stdout);

function nextPoll(): Promise<{ leader: number; term: string }> {
  return new Promise((resolve) => {
    instances.forEach(({ stdout }, leader) =>
      stdout!.on('data', (text: Buffer) => {
        const [, term] = /Polled in term (\d+)/.exec(text.toString()) ?? [];
        if (term) resolve({ leader, term });
      }),
    );
  });
}

const before = await nextPoll();
console.log(`Kills ${instances[before.leader]!.pid} in term ${before.term}.`);
instances[before.leader]!.kill('SIGKILL');
const killed = performance.now();
const after = await nextPoll();
console.log(`${instances[after.leader]!.pid} leads in term ${after.term}, ${Math.round(performance.now() - killed)} ms later.`);
instances[after.leader]!.kill();
