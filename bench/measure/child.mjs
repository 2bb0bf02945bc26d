// One process of one contestant: does the tasks that it is asked to, and says with each what it asked of Redis and what CPU it took.
import { Redis } from 'ioredis';
import { countRequests, sent } from '../contestants/requests.mjs';
import { tasks } from './tasks.mjs';

// Ours takes this copy of ioredis, the others that of contestants/.
countRequests(Redis);

const { open } = await import(`../contestants/${process.argv[2]}`);
let contestant;
let stray = 0;

// What a library throws into the void is its fault, and noted; the others' callers go on.
process.on('unhandledRejection', () => stray++);
process.on('uncaughtException', () => stray++);
process.on('disconnect', () => process.exit());

async function answer(task, options) {
  if (task === 'open') {
    contestant = await open(options);
    return contestant.version;
  }
  const before = { sent: { ...sent }, cpu: process.cpuUsage(), stray };
  const value = await tasks[task](contestant, options);
  const { user, system } = process.cpuUsage(before.cpu);
  const requests = Object.fromEntries(Object.entries(sent).map(([name, count]) => [name, count - (before.sent[name] ?? 0)]));
  return { ...value, sent: requests, user: user / 1000, cpu: (user + system) / 1000, stray: stray - before.stray };
}

process.on('message', ({ id, task, options }) => {
  answer(task, options).then(
    (value) => process.send({ id, value }),
    (error) => process.send({ id, error: String(error?.stack ?? error) }),
  );
});
