// What a workload is given: the contestants by turns in several rounds, on a server that is emptied for each.
import { isPeer, lineup, RAW, retryDelayFor } from '../contestants/lineup.mjs';
import { clock } from './clock.mjs';
import { pin } from './cores.mjs';
import { withCrew } from './crew.mjs';
import { openNetwork } from './network.mjs';
import { overlaps } from './oracle.mjs';
import { medians, quantile, sum } from './statistics.mjs';

export class Bench {
  tables = [];

  /** @param {{ redis, contestants, quick: boolean, retry?: number, rounds?: number, giveUp: boolean, log: (line: string) => void }} settings */
  constructor(settings) {
    Object.assign(this, settings);
  }

  /** `full`, or what is enough with `--quick`. */
  sized(full, quick) {
    return this.quick ? quick : full;
  }

  async on(network, run) {
    const opened = await openNetwork(network, this.redis);
    this.network = opened;
    try {
      await run(opened);
    } finally {
      opened.close();
    }
  }

  /**
   * Measures each contestant once in each round, in another order each time.
   *
   * @param {object} table
   * @param {(contestant) => Promise<object>} table.measure the numbers of one round.
   * @param {((round: Map<string, object>) => void)[]} [table.relate] each adds what compares them within the round.
   * @param {boolean} [table.peersOnce] the other libraries take part in the first round only, because no goal needs more of them.
   */
  async compare({ id, title, rounds, columns, chart, measure, relate = [], peersOnce = false, canTakePart = () => true }) {
    const { network, log } = this;
    const count = this.rounds ?? rounds;
    const contestants = this.contestants.filter(
      (contestant) => (!contestant.only || contestant.only.some((prefix) => id.startsWith(prefix))) && canTakePart(contestant),
    );
    const results = new Map(contestants.map((contestant) => [contestant.name, { version: '', rounds: [] }]));
    log(`${id}: ${title}, ${network.name}`);
    for (let round = 0; round < count; round++) {
      for (const contestant of turn(contestants, round)) {
        if (round > 0 && peersOnce && isPeer(contestant.name)) continue;
        const result = results.get(contestant.name);
        const numbers = await measure(contestant).catch((error) => ({ error: firstLine(error) }));
        result.version ||= numbers.version;
        delete numbers.version;
        result.rounds.push(numbers);
        log(`  round ${round + 1} of ${count}  ${contestant.name.padEnd(24)} ${say(columns, numbers)}`);
      }
      const measured = [...results].map(([name, result]) => [name, result.rounds[round]]).filter(([, numbers]) => numbers);
      for (const add of relate) add(new Map(measured));
    }
    const rows = [...results].map(([contestant, result]) => ({ contestant, ...result, median: medians(result.rounds) }));
    this.tables.push({ id, title, network: network.name, roundTrip: network.roundTrip, rounds: count, columns, chart, rows, peersOnce });
  }

  /**
   * Calls `use` with a crew of fresh processes whose code is warm. `cores`: where they and the server run. `rivals`: they will contend for a key, so
   * they do that during the warm-up, too.
   */
  withCrew(contestant, { callers = 1, size = 1, warmUp, cores = 'anywhere', rivals = false }, use) {
    const retryDelay = this.retry ?? retryDelayFor(callers, contestant);
    return withCrew({ contestant, port: this.network.port, size, retryDelay }, async (crew) => {
      pin(cores, this.redis.pid, crew.pids);
      const warm = await crew.ask('warmUp', { count: warmUp ?? (this.network.name === 'loopback' ? 500 : 50) });
      if (rivals) await crew.ask('loop', { key: 'warm-up', callers: 25, ms: 0, duration: this.sized(1000, 300), startAt: clock() + 50 });
      // Here, because what a killed process had sent may arrive after its end.
      await this.redis.empty();
      const numbers = await use(crew, sum(warm.map(({ bare }) => bare)) / warm.length);
      return { version: crew.version, ...numbers };
    });
  }

  /** A crew of the contestant and one of raw, for a workload that alternates between them. */
  withRaw(contestant, options, use) {
    const raw = lineup.find(({ name }) => name === RAW);
    return this.withCrew(raw, options, (rawCrew) => this.withCrew(contestant, options, (crew) => use(crew, rawCrew)));
  }

  /** The same task for all of the crew, with what it cost. */
  async measured(crew, task, options) {
    await this.redis.reset();
    const answers = await crew.ask(task, options);
    return { answers, ...(await this.cost(answers)) };
  }

  async cost(answers) {
    const { cpu: serverCpu, commands, took } = await this.redis.usage();
    const total = (name) => sum(answers.map((answer) => answer[name]));
    const sent = answers.flatMap((answer) => Object.entries(answer.sent));
    return {
      requests: sum(sent.map(([, count]) => count)),
      user: total('user'),
      cpu: total('cpu'),
      stray: total('stray'),
      serverCpu,
      // The time of a script contains that of the commands it calls, so only what clients sent is added up.
      commandTime: sum(sent.map(([name, count]) => count * (took[name] ?? 0))),
      commands,
    };
  }
}

/** Sections of one key by all of a crew that began before an earlier one had ended. */
export const overlapsOf = (answers) => overlaps(answers.map(({ times }) => times));

/** Exclusion where the workload itself has one caller for each key. */
export async function probed(crew) {
  return overlapsOf(await crew.ask('probe', {}));
}

export const waitsOf = (answers, q) =>
  quantile(
    answers.flatMap(({ waits }) => [...waits]),
    q,
  );

/** Adds ratios to the numbers of one contestant in the same round. `ratios`: the name of each, and of what it is made. */
export const against = (contestant, ratios) => (round) => {
  const base = round.get(contestant);
  for (const numbers of round.values()) for (const [ratio, name] of Object.entries(ratios)) numbers[ratio] = numbers[name] / base?.[name];
};

/** Another one begins in each round, and every other round goes backwards. */
function turn(contestants, round) {
  const from = round % contestants.length;
  const order = [...contestants.slice(from), ...contestants.slice(0, from)];
  return round % 2 ? order.reverse() : order;
}

/** The telling line of a message, or of what a process printed at its end. */
function firstLine(error) {
  const lines = String(error?.message ?? error).split('\n');
  return lines.find((line) => /^\w*Error\b/.test(line)) ?? lines[0];
}

function say(columns, numbers) {
  if (numbers.error) return numbers.error;
  return columns
    .filter(({ key }) => Number.isFinite(numbers[key]))
    .map(({ key, title, digits = 0 }) => `${title} ${numbers[key].toFixed(digits)}`)
    .join(', ');
}
