// W2 with this build next to former ones in one run. It sees a tenth more CPU, also on a busy machine: short slices alternate, and each is compared with
// that of the same round.
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { begin } from './measure/begin.mjs';
import { withCrew } from './measure/crew.mjs';
import { startRedis } from './measure/redis.mjs';
import { rounds } from './measure/rounds.mjs';
import { median, quantile } from './measure/statistics.mjs';

/** What a process has compiled differs from start to start, by more than a tenth: so there are several of each build. */
const PROCESSES = 4;
const SLICES = 15;
const SLICE = { callers: 256, duration: 100 };

const usage =
  'builds <folder>...\n\n  <folder>   a work tree of another commit in which `npm run build` has run; this build is compared with the first';
const { folders } = await begin(usage, { allowPositionals: true }, (values, positionals) => {
  if (positionals.length === 0) throw new Error('Name the folder of another build.');
  return { ...values, folders: positionals.map((folder) => resolve(folder)) };
});
const redis = await startRedis();
const builds = [...folders, fileURLToPath(new URL('../', import.meta.url))];
const results = Object.fromEntries(builds.map((folder) => [folder, []]));
for (let process = 0; process < PROCESSES; process++) await withBuilds(builds, {}, measure);
report(Object.entries(results));
await redis.stop();
process.exit(0);

/** Calls `use` with a process for each build. */
async function withBuilds([folder, ...others], crews, use) {
  if (folder === undefined) return use(crews);
  const contestant = { file: 'build.mjs', as: folder };
  return withCrew({ contestant, port: redis.port }, (crew) => withBuilds(others, { ...crews, [folder]: crew }, use));
}

async function measure(crews) {
  for (const crew of Object.values(crews)) await crew.ask('distinct', { ...SLICE, duration: 2000 });
  const slice = async (crew) => {
    const [{ cpu, done, elapsed }] = await crew.ask('distinct', SLICE);
    return { cpu: (cpu / done) * 1000, speed: (done / elapsed) * 1000 };
  };
  for (const [folder, slices] of Object.entries(await rounds(crews, slice, SLICES))) results[folder].push(...slices);
}

function report(all) {
  const [[, base]] = all;
  for (const [folder, slices] of all) {
    const of = (name) => slices.map((slice) => slice[name]);
    const ratios = (name) => slices.map((slice, index) => slice[name] / base[index][name]);
    const [low, middle, high] = [0.25, 0.5, 0.75].map((q) => quantile(ratios('cpu'), q).toFixed(2));
    const cpu = `client CPU ${median(of('cpu')).toFixed(1)} µs, ÷ first ${middle} (half of the rounds: ${low} to ${high})`;
    console.log(`${folder}\n  ${cpu}; pairs/s ${median(of('speed')).toFixed(0)}, ÷ first ${median(ratios('speed')).toFixed(2)}`);
  }
}
