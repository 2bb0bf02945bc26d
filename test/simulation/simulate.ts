import type vm from 'node:vm';
import type { Entry, Fact, Kind } from '../chaos/history/entry.js';
import { isLossy, type Group } from '../chaos/faults/fault.js';
import { judge } from '../chaos/oracles/all.js';
import type { Facts, Violation } from '../chaos/oracles/oracle.js';
import { recordOf } from '../chaos/oracles/rows.js';
import { Random } from '../chaos/random.js';
import { leftoversIn } from '../chaos/stores/records/leftovers.js';
import type { FencedTotals } from '../chaos/worker/fenced-counter.js';
import { FAULTS, type AppPlace, type ServerPlace, type SimulatedFault } from './faults.js';
import { Host } from './host.js';
import type { App, Order, Port, Server, ServerKind, StoreKind } from './inside.js';
import { Link } from './network.js';
import { Rows } from './rows.js';
import { World } from './world.js';

export interface SimulationOptions {
  readonly seed: string;
  readonly store: StoreKind;
  readonly kinds: Kind[];
  readonly groups: readonly Group[];
  /** Whether a server may come back empty. */
  readonly forgets: boolean;
  /** Milliseconds in which faults strike. */
  readonly length: number;
  /** More than twice as many faults. */
  readonly dense?: boolean;
  /** Strike only so many faults. */
  readonly faults?: number;
}

export interface SimulationResult {
  readonly history: readonly Entry[];
  readonly violations: readonly Violation[];
  /** How many faults struck, how many messages were lost, and how many guarded writes were made. */
  readonly faults: number;
  readonly lost: number;
  readonly writes: number;
}

interface Inside {
  startApp(order: Order, port: Port): App;
  startServer(kind: ServerKind): Server;
}

interface Slot extends AppPlace {
  readonly id: string;
  readonly app: App;
}

const APPS = 3;
/** Milliseconds: after the last fault the load goes on for so long. */
const QUIET = 1_500;
/** Milliseconds within which apps must be closed, and all that expires is gone. */
const LONGEST_CLOSE = 20_000;
const LAST_TIMERS = 2_500;
const EXPIRY = 6_500;
/** Milliseconds by which a clock that jumps may put that off. */
const JUMP = 40_000;

/** One run of apps and servers under faults, and what the oracles say of it. The same options give the same history. */
export async function simulate(code: vm.Script, options: SimulationOptions): Promise<SimulationResult> {
  return new Simulation(code, options).run();
}

class Simulation {
  private readonly world = new World();
  private readonly random: Random;
  private readonly history: Entry[] = [];
  private readonly kinds: readonly ServerKind[];
  private readonly servers: ServerPlace[];
  private readonly slots: Slot[] = [];
  private readonly gone = new Set<number>();
  private readonly resource = new Resource();
  /** Where one server with a clock has all rows, and forgets none. */
  private readonly rows: Rows | undefined;
  private processes = 0;
  private strikes = 0;
  /** What ends the faults that are at work. */
  private readonly open = new Set<() => void>();
  private readonly note = (w: string, fact: Fact, t = this.world.time): void => {
    this.history.push({ t, w, ...structuredClone(fact) });
    this.rows?.said(fact, t, (key, owner) => this.leftOf(key, owner, t));
  };

  constructor(
    private readonly code: vm.Script,
    private readonly options: SimulationOptions,
  ) {
    const { seed, store } = options;
    const random = (this.random = new Random(seed));
    const members = store === 'quorum' ? random.pick([3, 3, 4, 5]) : 1;
    this.kinds = Array.from({ length: members }, (_, i) =>
      store === 'observed' || (i % 2 === 1 && random.chance(0.5)) ? random.pick(['count', 'neither']) : 'clock',
    );
    this.servers = this.kinds.map((kind) => {
      const host = this.host();
      return { host, server: host.start<Inside>(this.code).startServer(kind), isRefusing: false };
    });
    if (store === 'records' && !options.groups.some(isLossy)) this.rows = new Rows();
  }

  async run(): Promise<SimulationResult> {
    const { world, random, options, slots } = this;
    const trouble = (error: unknown): void =>
      this.note('world', { e: 'trouble', what: 'unhandled rejection', detail: String((error as Error | undefined)?.stack ?? error) });
    process.on('unhandledRejection', trouble).on('uncaughtException', trouble);
    try {
      for (let slot = 0; slot < APPS; slot++) this.start(slot, 1);
      const faults = this.plan(random.fork('plan'));
      await this.runFor(options.length);
      for (const heal of this.open) heal();
      this.note('chaos', { e: 'calm' });
      await this.runFor(QUIET);
      let open = slots.length;
      for (const { app } of slots) void app.stop().finally(() => open--);
      const late = world.now + LONGEST_CLOSE;
      world.at(late, () => undefined);
      await world.runUntil(() => open === 0 || world.now >= late);
      await this.runFor(LAST_TIMERS);
      for (const { id, host } of slots)
        this.note(id, { e: 'left', resources: host.alive > 0 ? [`timers ×${host.alive}`] : [], listeners: [] });
      await this.runFor(EXPIRY + (options.groups.includes('clock-server') ? JUMP : 0));
      const facts: Facts = { lossy: options.groups.some(isLossy), fenced: this.resource.totals(), leftovers: this.leftovers() };
      const writes = this.history.filter(({ e }) => e === 'wrote').length;
      return {
        history: this.history,
        violations: [...(this.rows?.violations ?? []), ...judge(this.history, facts)],
        faults,
        lost: world.lost,
        writes,
      };
    } finally {
      process.off('unhandledRejection', trouble).off('uncaughtException', trouble);
      for (const { host } of [...slots, ...this.servers]) host.kill();
    }
  }

  private async runFor(ms: number): Promise<void> {
    const { world } = this;
    const end = world.now + ms;
    world.at(end, () => undefined);
    await world.runUntil(() => world.now >= end);
  }

  private host(): Host {
    const pid = ++this.processes;
    const random = this.random.fork(`process ${pid}`);
    const spread = this.options.store === 'observed' ? 0.01 : 0.002;
    return new Host(this.world, pid, 1 + (random.next() - 0.5) * spread, random);
  }

  private start(slot: number, generation: number): void {
    const { world, servers, options } = this;
    const id = `w${slot}.${generation}`;
    const host = this.host();
    const links = servers.map((server, i) => new Link(world, this.random.fork(`${id} ${i}`), host, server.host));
    const port: Port = {
      ask: (index, request, answered) => {
        const { server } = servers[index]!;
        const link = links[index]!;
        let isAnswered = false;
        link.up(() => {
          if (request.verb === 'listen') server.inboxes.set(request.inbox!, (text) => link.down(() => app.received(request.inbox!, text)));
          const { key = '' } = request.change ?? {};
          const before = server.row(key);
          const reply = servers[index]!.isRefusing ? 'refused' : server.answer(request);
          this.rows?.exchanged(world.time, `app-${id}`, before, server.row(key), server.time);
          // A network may bring a request twice, and the client takes the reply to the first one.
          if (!isAnswered) link.down(() => answered(reply as never));
          isAnswered = true;
        });
      },
      note: (fact, t) => this.note(id, atRate(fact, host.rate), t),
      counter: (key) => this.resource.counter(key),
      jobs: this.resource.jobs,
      fenced: this.resource,
    };
    const order = {
      id,
      seed: `${options.seed}/${id}`,
      kinds: options.kinds,
      store: options.store,
      servers: this.kinds,
      forgets: options.forgets,
    };
    const app = host.start<Inside>(this.code).startApp(order, port);
    const kill = (): void => {
      if (this.gone.has(host.pid)) return;
      host.kill();
      this.gone.add(host.pid);
      this.note('chaos', { e: 'killed', worker: id });
      world.at(world.now + 300, () => this.start(slot, generation + 1));
    };
    // The dead do not notice it, and a machine that sleeps only when it wakes up.
    const cut = (server: number): void => void world.at(world.now, () => app.cut(server), host);
    this.slots[slot] = { id, host, links, app, kill, cut };
  }

  /** Faults at random times. Those that are wide come one at a time. */
  private plan(random: Random): number {
    const { world, options, servers } = this;
    const possible = FAULTS.filter(({ group, calm }) => options.groups.includes(group) && (calm === undefined || options.forgets));
    if (possible.length === 0) return 0;
    const most = options.faults ?? Infinity;
    let count = 0;
    for (let at = 300, wideUntil = 0; at < options.length; at += random.int(20, options.dense ? 250 : 600)) {
      const fault = random.pick(possible);
      const lasts = random.int(...fault.lasts);
      const slot = random.int(0, APPS - 1);
      const index = random.int(0, servers.length - 1);
      const chance = random.fork(count);
      const { isWide, calm = 0 } = fault;
      if (isWide && at < wideUntil + calm) continue;
      // A store may be well for a while.
      if (isWide) wideUntil = at + lasts + Math.max(calm, random.int(500, 3_000));
      if (count++ >= most) break;
      world.at(at, () => this.strike(fault, slot, index, lasts, chance));
    }
    return Math.min(count, most);
  }

  private strike(fault: SimulatedFault, slot: number, index: number, lasts: number, random: Random): void {
    const { world, slots } = this;
    const n = ++this.strikes;
    const app = slots[slot]!;
    const { name, group } = fault;
    const target = fault.isWide ? `server ${index}` : app.id;
    this.note('chaos', { e: 'fault', n, name, group, target, detail: `${lasts} ms` });
    const end = fault.strike({ app, apps: slots, server: this.servers[index]!, index, random });
    const heal = (): void => {
      if (!this.open.delete(heal)) return;
      end();
      if (fault.isStandstill) this.note(app.id, { e: 'lag', ms: lasts });
      this.note('chaos', { e: 'healed', n, name });
    };
    this.open.add(heal);
    world.at(world.now + lasts, heal);
  }

  /** Milliseconds of the world, from this time on. */
  private leftOf(key: string, owner: string, from: number): number {
    const { server, host } = this.servers[0]!;
    const hold = recordOf(server.row(key)).holds.find((each) => each.owner === owner);
    return ((hold?.endsAt ?? server.time) - server.time) / host.rate + (this.world.time - from);
  }

  private leftovers() {
    return this.servers.flatMap(({ server }) => leftoversIn(server.rows(), server.time, this.gone));
  }
}

/** What a process says of its leases, in milliseconds of the world. */
function atRate(fact: Fact, rate: number): Fact {
  if (fact.e === 'wrote') return { ...fact, remaining: fact.remaining / rate };
  if (fact.e === 'claim') return { ...fact, remaining: fact.remaining.map((ms) => ms / rate) };
  if (fact.e === 'granted') return { ...fact, leases: fact.leases.map((lease) => ({ ...lease, remaining: lease.remaining / rate })) };
  return fact;
}

/** What the locks guard: a counter that nothing else guards, and one that refuses a smaller token than it has seen. */
class Resource {
  readonly jobs = new Map<string, string[]>();
  private readonly counters = new Map<string, { value: number }>();
  private readonly fencedCounters = new Map<string, FencedTotals & { seen: number }>();

  counter(key: string): { value: number } {
    if (!this.counters.has(key)) this.counters.set(key, { value: 0 });
    return this.counters.get(key)!;
  }

  read(key: string, token: number): number | undefined {
    const counter = this.fencedOf(key);
    if (token < counter.seen) return undefined;
    counter.seen = token;
    return counter.counter;
  }

  write(key: string, token: number, read: number): boolean {
    const counter = this.fencedOf(key);
    if (token < counter.seen) return false;
    if (counter.counter !== read) counter.damaged++;
    counter.seen = token;
    counter.counter = read + 1;
    counter.accepted++;
    return true;
  }

  totals(): FencedTotals[] {
    return [...this.fencedCounters.values()].map(({ seen: _, ...totals }) => totals);
  }

  private fencedOf(key: string) {
    const counter = this.fencedCounters.get(key) ?? { key, counter: 0, accepted: 0, damaged: 0, seen: -1 };
    this.fencedCounters.set(key, counter);
    return counter;
  }
}
