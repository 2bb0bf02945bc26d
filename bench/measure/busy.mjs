// What other processes take of the CPU makes a measurement worthless, so it is measured before each start.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { sleep } from './clock.mjs';
import { sum } from './statistics.mjs';

/** The share of all cores that others may use. */
const LIMIT = 0.1;

const idle = () => sum(cpus().map(({ times }) => times.idle));

/** The share of the CPU that was not idle for two seconds in which this process slept. The load average still counts the build before the start. */
export async function measureBusy() {
  const before = { at: performance.now(), idle: idle(), ticks: ticksOfProcesses() };
  await sleep(2000);
  const passed = performance.now() - before.at;
  const share = Math.max(0, 1 - (idle() - before.idle) / (passed * cpus().length));
  const busiest = [...ticksOfProcesses()]
    .map(([pid, { name, ticks }]) => ({ name: `${name} (${pid})`, cores: ((ticks - (before.ticks.get(pid)?.ticks ?? 0)) * 10) / passed }))
    .sort((a, b) => b.cores - a.cores)
    .slice(0, 3)
    .filter(({ cores }) => cores >= 0.02)
    .map(({ name, cores }) => `${name} ${percent(cores)} of a core`);
  return { share, busiest, isBusy: share > LIMIT };
}

/** Ends the process on a busy machine, unless that is to be measured all the same. */
export async function refuseIfBusy(allSame) {
  const { share, busiest, isBusy } = await measureBusy();
  if (!isBusy) return;
  const found = `The machine is busy: ${percent(share)} of its CPU in the last two seconds (${busiest.join(', ') || 'by short processes'}).`;
  if (allSame) return console.log(`${found} Measuring all the same (--busy).`);
  console.error(`${found} At most ${percent(LIMIT)} may be in use. Wait, end what runs, or measure all the same with --busy.`);
  process.exit(1);
}

export const percent = (share) => `${Math.round(share * 100)} %`;

/** Hundredths of a second that each process has used so far, where /proc tells. */
function ticksOfProcesses() {
  const ticks = new Map();
  if (!existsSync('/proc')) return ticks;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const [, name, rest] = /\((.*)\) (.*)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'));
      const fields = rest.split(' ');
      ticks.set(pid, { name, ticks: Number(fields[11]) + Number(fields[12]) });
    } catch {
      // It has just ended.
    }
  }
  return ticks;
}
