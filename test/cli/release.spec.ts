// `ndl release` against a key that changes hands all the time: it takes the key from the owner that was named, or it does nothing.
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { Failure } from '../../lib/cli/failure.js';
import { Flags } from '../../lib/cli/flags.js';
import { Output } from '../../lib/cli/output.js';
import { release } from '../../lib/cli/release.js';
import { forkChild, type Child } from '../support/child.js';
import { useCli } from '../support/cli.js';
import { random } from '../support/random.js';
import { pause } from '../support/time.js';
import type { SwapperMessage } from './swapper.child.js';
import { useRedis } from './setting.js';

const redis = useRedis();
const { ndl } = useCli();

/** What was done, and to which owner. */
interface Done {
  owner: string;
  outcome: 'changed' | 'free' | 'forced' | 'given back';
}

type Flagged = Record<string, string | true>;

interface Seen {
  owner: string;
  token: string;
}

async function race(times: number, atOnce: number, longest: number, free: (flags: Flagged) => Promise<Done['outcome']>): Promise<Done[]> {
  const swapper: Child<SwapperMessage> = await forkChild<SwapperMessage>('test/cli/swapper.child.ts', {
    args: [redis.url, String(longest)],
  });
  await swapper.waitFor('ready', { within: 30_000 });
  const client = redis.server.client();
  const seen = async (): Promise<Seen> => {
    for (;;) {
      const [owner, token] = await client.mget('key', '{key}:fence');
      if (owner && token && !owner.startsWith('kept:')) return { owner, token };
      if (!swapper.running) throw new Error(`The other process has ended:\n${swapper.output()}`);
    }
  };
  const done: Done[] = [];
  const work = async (): Promise<void> => {
    while (done.length < times) {
      const { owner, token } = await seen();
      await pause((random() * longest) / 2);
      const how: Flagged = random() < 0.5 ? { now: true } : { grace: '200ms' };
      const known: Flagged = random() < 0.5 ? { token } : {};
      done.push({ owner, outcome: await free({ owner, reason: 'test', yes: true, ...how, ...known }) });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  swapper.send({});
  const { held, taken, asked } = await swapper.waitFor('ended', { within: 20_000 });
  const of = (...outcomes: Done['outcome'][]) =>
    new Set(done.filter(({ outcome }) => outcomes.includes(outcome)).map(({ owner }) => owner));
  expect(held).toBeGreaterThan(times / 4);
  // Nobody has lost it but those it was taken from; nobody was asked but those that were named.
  expect(taken.filter((owner) => !of('forced').has(owner))).toEqual([]);
  const named = of('forced', 'given back', 'changed');
  expect(asked.filter((owner) => !named.has(owner))).toEqual([]);
  return done;
}

function countsOf(done: readonly Done[]): Record<string, number> {
  return Object.fromEntries(
    ['changed', 'free', 'forced', 'given back'].map((name) => [name, done.filter(({ outcome }) => outcome === name).length]),
  );
}

it('1,000 times by the function of the command', async () => {
  const locks = new Locks(redisStore({ url: redis.url }), { logger: false, app: 'ndl' });
  const done = await race(1_000, 4, 40, async (flags) => {
    const out = new Output(false, false);
    let text = '';
    out.line = (line) => void (text += `${line}\n`);
    const session = {
      flags: new Flags(flags),
      words: ['key'],
      rest: [],
      out,
      signal: new AbortController().signal,
      locks: async () => locks,
    };
    return release.run(session).then(
      () => (text.includes('taken by force') ? 'forced' : 'given back'),
      (error: unknown) => {
        if (!(error instanceof Failure) || ![4, 5].includes(error.exitCode)) throw error;
        return error.exitCode === 4 ? 'free' : 'changed';
      },
    );
  });
  await locks.close();
  const counts = countsOf(done);
  expect(counts.changed).toBeGreaterThan(50);
  expect(counts.forced! + counts['given back']!).toBeGreaterThan(50);
}, 240_000);

it('40 times by processes of its own', async () => {
  const done = await race(40, 4, 600, async (flags) => {
    const args = Object.entries(flags).flatMap(([name, value]) => (value === true ? [`--${name}`] : [`--${name}`, value]));
    const { code, stdout, stderr } = await ndl(['release', 'key', '--url', redis.url, ...args]);
    if (![0, 4, 5].includes(code)) throw new Error(`${code}: ${stderr}`);
    return code === 4 ? 'free' : code === 5 ? 'changed' : stdout.includes('taken by force') ? 'forced' : 'given back';
  });
  const counts = countsOf(done);
  expect(counts.changed! + counts.free!).toBeGreaterThan(0);
}, 240_000);
