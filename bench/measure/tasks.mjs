// Tasks of a contestant in its process.
import { bareSection, clock, section, sleep } from './clock.mjs';
import { Sections } from './oracle.mjs';
import { hold, lookAtHeld, rest } from './holding.mjs';
import { give, take, waitFor } from './waking.mjs';

const TTL = 10_000;

const times = (count, start) => Promise.all(Array.from({ length: count }, (_, i) => start(i)));

const nothing = async () => undefined;

/** Until the code is compiled. */
async function warmUp(contestant, { count = 500 }) {
  for (let i = 0; i < count; i++) await contestant.locked('warm-up', TTL, nothing);
  return { bare: await bareSection(1) };
}

/** One caller, pair after pair: microseconds of each. */
async function pairs(contestant, { count }) {
  const took = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    const start = performance.now();
    await contestant.locked('lone', TTL, nothing);
    took[i] = (performance.now() - start) * 1000;
  }
  return { took };
}

let newKeys = 0;

/** Callers that have a key each, or a new one for each pair. */
async function distinct(contestant, { callers, duration, isNew = false }) {
  const start = performance.now();
  const end = start + duration;
  let done = 0;
  await times(callers, async (i) => {
    while (performance.now() < end) {
      await contestant.locked(isNew ? `new-${newKeys++}` : `own-${i}`, TTL, nothing);
      done++;
    }
  });
  return { done, elapsed: performance.now() - start };
}

/** A few callers on one key, where nobody looks at the time. */
async function probe(contestant, { callers = 8, turns = 3 }) {
  const sections = new Sections();
  await times(callers, async () => {
    for (let i = 0; i < turns; i++) await contestant.locked('probe', TTL, () => sections.run(() => sleep(1)));
  });
  return { times: sections.times };
}

/** All come at once, each wants one section. A caller that has not had it by the cap never gets it. */
async function once(contestant, { callers, ms, cap, giveUp }) {
  const sections = new Sections();
  const waits = [];
  const errors = {};
  let failed = 0;
  let ended = false;
  const start = performance.now();
  const all = times(callers, async () => {
    const asked = performance.now();
    try {
      await contestant.locked('one', TTL, async () => {
        if (ended) return;
        waits.push(performance.now() - asked);
        await sections.run(() => section(ms));
      });
    } catch (error) {
      failed++;
      const name = `${error?.name}: ${error?.message}`.slice(0, 100);
      errors[name] = (errors[name] ?? 0) + 1;
    }
  });
  const finish = await Promise.race([
    all.then(() => 'done'),
    sleep(cap).then(() => 'cap'),
    hopeless(() => sections.count / callers, giveUp),
  ]);
  ended = true;
  const elapsed = performance.now() - start;
  return {
    done: sections.count,
    failed,
    errors,
    elapsed,
    finish,
    waits,
    times: sections.times,
    rss: process.resourceUsage().maxRSS / 1024,
  };
}

/** Resolves when too little is done after a while. */
async function hopeless(progress, giveUp) {
  if (giveUp) {
    await sleep(giveUp.after);
    if (progress() < giveUp.below) return 'given up';
  }
  return new Promise(() => undefined);
}

/** Callers that come again and again until the end. A wait that has not ended then counts as long as it has lasted. */
async function loop(contestant, { key = 'one', callers, ms, startAt, duration }) {
  const sections = new Sections();
  const waits = [];
  const asked = new Set();
  const end = startAt + duration;
  let failed = 0;
  await sleep(startAt - clock());
  void times(callers, async () => {
    while (clock() < end) {
      const mine = { at: clock() };
      asked.add(mine);
      try {
        await contestant.locked(key, TTL, async () => {
          if (clock() >= end) return;
          asked.delete(mine);
          waits.push(clock() - mine.at);
          await sections.run(() => section(ms));
        });
      } catch {
        failed++;
      }
      asked.delete(mine);
    }
  });
  await sleep(end - clock());
  for (const { at } of asked) waits.push(end - at);
  return { done: sections.count, failed, waits: Float64Array.from(waits), times: sections.times };
}

/** The same as {@link loop}, for a key that several may hold. */
async function share(contestant, { callers, kind, writes, permits, ms, startAt, duration }) {
  const sections = { read: new Sections(), write: new Sections() };
  const waits = { read: [], write: [] };
  const end = startAt + duration;
  let failed = 0;
  const enter = {
    read: (work) => (kind === 'permits' ? contestant.permitted('ten', permits, TTL, work) : contestant.reading('shared', TTL, work)),
    write: (work) => contestant.writing('shared', TTL, work),
  };
  await sleep(startAt - clock());
  void times(callers, async () => {
    while (clock() < end) {
      const side = Math.random() < writes ? 'write' : 'read';
      const asked = clock();
      try {
        await enter[side](async () => {
          if (clock() >= end) return;
          waits[side].push(clock() - asked);
          await sections[side].run(() => section(ms));
        });
      } catch {
        failed++;
      }
    }
  });
  await sleep(end - clock());
  return {
    done: sections.read.count + sections.write.count,
    failed,
    waits: [...waits.read, ...waits.write],
    writeWaits: waits.write,
    read: sections.read.times,
    write: sections.write.times,
  };
}

export const tasks = { warmUp, pairs, distinct, probe, once, loop, share, hold, rest, lookAtHeld, take, waitFor, give };
