import { AsyncLocalStorage } from 'node:async_hooks';
import { createRequire } from 'node:module';
import vm from 'node:vm';
import type { Random } from '../chaos/random.js';
import { IMMEDIATE, TIMER, type Happening, type Machine, type World } from './world.js';

const load = createRequire(import.meta.url);
/** 2026 */
const EPOCH = 1_767_225_600_000;
/** Milliseconds: guarantees.md promises nothing about a shorter one. */
const SHORTEST_SLEEP = 60;
const SHARED = {
  AbortController,
  AbortSignal,
  Buffer,
  DOMException,
  Event,
  EventTarget,
  TextDecoder,
  TextEncoder,
  URL,
  console,
  structuredClone,
};
const CLOCK = `(clock, random) => {
  const Real = Date;
  Date = class extends Real {
    constructor(...args) { args.length > 0 ? super(...args) : super(clock()); }
    static now() { return Math.floor(clock()); }
  };
  Math.random = random;
}`;

/** A process on a machine of its own: its clocks, its timers, its chance, and its own copy of the code, with all that the code keeps for the process. */
export class Host implements Machine {
  /** Milliseconds by which its wall clock was set. */
  wallOffset = 0;
  private state: 'runs' | 'stands still' | 'is gone' = 'runs';
  private kept: Happening[] = [];
  private suspended = 0;
  private suspendedAt: number | undefined;
  /** Those that keep it alive. */
  private readonly timers = new Set<Timer>();
  private readonly storages: AsyncLocalStorage<unknown>[] = [];

  /** @param rate how many of its seconds pass in one. */
  constructor(
    readonly world: World,
    readonly pid: number,
    readonly rate: number,
    private readonly random: Random,
  ) {}

  /** Loads the code. @returns its exports. */
  start<T>(code: vm.Script): T {
    const { random } = this;
    const context = vm.createContext({ ...SHARED, ...this.globals });
    (vm.runInContext(CLOCK, context) as (...args: unknown[]) => void)(
      () => EPOCH + this.sinceBoot + this.wallOffset,
      () => random.next(),
    );
    const module = { exports: {} as T };
    (code.runInContext(context) as (...args: unknown[]) => void)(module, module.exports, (name: string) => this.require(name));
    return module.exports;
  }

  /** Its processes stand still, and time goes on for them. With `sleeps` the machine does, and only its clock since boot goes on. */
  stop(sleeps = false): void {
    if (this.state !== 'runs') return;
    this.state = 'stands still';
    if (sleeps) this.suspendedAt = this.world.now;
  }

  resume(): void {
    if (this.state !== 'stands still') return;
    const { world, suspendedAt } = this;
    // Another fault may end early what is to be a sleep.
    const wakesAt = suspendedAt === undefined ? 0 : suspendedAt + SHORTEST_SLEEP;
    if (wakesAt > world.now) return void world.at(wakesAt, () => this.resume());
    this.state = 'runs';
    if (suspendedAt !== undefined) this.suspended += world.now - suspendedAt;
    this.suspendedAt = undefined;
    for (const happening of this.kept.splice(0)) world.add(happening);
  }

  /** Forgets what has not happened yet, as a crash does. */
  drop(): void {
    this.kept = [];
  }

  kill(): void {
    this.state = 'is gone';
    this.kept = [];
    this.timers.clear();
    // Node goes through all that are in use at each promise.
    for (const storage of this.storages) storage.disable();
  }

  accepts(happening: Happening): boolean {
    if (this.state === 'stands still') this.kept.push(happening);
    return this.state === 'runs';
  }

  get standsStill(): boolean {
    return this.state === 'stands still';
  }

  /** How many timers still keep it alive. */
  get alive(): number {
    return this.timers.size;
  }

  private get sinceBoot(): number {
    return this.world.now * this.rate;
  }

  /** Stands still while the machine sleeps. */
  private get monotonic(): number {
    return ((this.suspendedAt ?? this.world.now) - this.suspended) * this.rate;
  }

  private get globals(): object {
    const clear = (timer?: Timer): void => timer?.clear();
    const set =
      (phase: number) =>
      (callback: (...args: unknown[]) => void, ...args: [number?, ...unknown[]]) => {
        const delay = phase === TIMER ? Math.max(1, Number(args.shift() ?? 1)) : 0;
        return new Timer(this, this.timers, delay / this.rate, phase, () => callback(...args));
      };
    return {
      setTimeout: set(TIMER),
      setImmediate: set(IMMEDIATE),
      clearTimeout: clear,
      clearImmediate: clear,
      queueMicrotask,
      performance: { now: () => this.monotonic },
      process: {
        pid: this.pid,
        argv: ['node', 'app'],
        env: {},
        platform: 'linux',
        version: process.version,
        versions: process.versions,
        // The world's, so that all histories have one clock.
        hrtime: { bigint: () => BigInt(Math.round(this.world.time * 1e6)) },
        nextTick: process.nextTick.bind(process),
        emitWarning: (warning: unknown) => console.warn(warning),
        on: () => undefined,
        once: () => undefined,
        off: () => undefined,
      },
    };
  }

  private require(name: string): unknown {
    const module = load(name) as object;
    const { storages } = this;
    if (name === 'node:async_hooks') {
      return {
        ...module,
        AsyncLocalStorage: class extends AsyncLocalStorage<unknown> {
          constructor() {
            super();
            storages.push(this);
          }
        },
      };
    }
    if (name === 'node:perf_hooks') return { ...module, performance: { now: () => this.monotonic } };
    // In hundredths of a second, as Linux tells it.
    if (name === 'node:os') return { ...module, hostname: () => 'host', uptime: () => Math.floor(this.sinceBoot / 10) / 100 };
    return name === 'node:crypto' ? { ...module, randomUUID: () => this.uuid() } : module;
  }

  private uuid(): string {
    const digits = Array.from({ length: 32 }, () => Math.floor(this.random.next() * 16).toString(16)).join('');
    return digits.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-4$3-8$4-$5');
  }
}

class Timer {
  private readonly happening: Happening;

  constructor(
    host: Host,
    private readonly all: Set<Timer>,
    delay: number,
    phase: number,
    run: () => void,
  ) {
    all.add(this);
    const whole = (): void => {
      all.delete(this);
      run();
    };
    this.happening = host.world.at(host.world.now + delay, whole, host, phase);
  }

  clear(): void {
    this.happening.isOff = true;
    this.all.delete(this);
  }

  ref(): this {
    return this;
  }

  unref(): this {
    this.all.delete(this);
    return this;
  }
}
