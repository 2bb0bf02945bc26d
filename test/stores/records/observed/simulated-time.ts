// Time that passes only from one event to the next, for processes whose clocks have speeds of their own. As long as a simulation runs, the timers, the
// clocks and the random numbers of the global scope are those of the process whose turn it is.

/** Of the wall clock when a simulation begins, milliseconds since 1970. */
const START = Date.UTC(2030, 0, 1);

interface Timer {
  /** True time. */
  time: number;
  readonly order: number;
  readonly process: SimulatedProcess | undefined;
  /** Of the clock of the process: not before that. */
  readonly due: number;
  readonly run: () => void;
  isCleared: boolean;
  unref(): Timer;
}

/** A process, as far as time goes. */
export class SimulatedProcess {
  isDead = false;
  /** True time. */
  runsAgainAt = 0;
  /** How often its clock has stood still. */
  stops = 0;
  private readonly start: number;
  private stoodStill = 0;

  /**
   * @param speed of its monotonic clock: 1.01 goes by one percent too fast.
   * @param wall milliseconds by which its wall clock is ahead.
   */
  constructor(
    readonly time: SimulatedTime,
    readonly name: string,
    readonly speed: number,
    readonly wall: number,
  ) {
    this.start = 1e6 * time.random();
  }

  /** Its monotonic clock. */
  get now(): number {
    return this.start + (this.time.now - this.stoodStill) * this.speed;
  }

  /** The true time when its clock shows this, if it does not stand still meanwhile. */
  reaches(local: number): number {
    return (local - this.start) / this.speed + this.stoodStill;
  }

  /** It does nothing for so long. @param isSuspended its clock stands still, too. */
  pause(milliseconds: number, isSuspended = false): void {
    if (this.runsAgainAt > this.time.now) return;
    this.runsAgainAt = this.time.now + milliseconds;
    if (!isSuspended) return;
    this.stops++;
    this.stoodStill += milliseconds;
  }
}

const { nextTick } = process;

export class SimulatedTime {
  /** The true time. */
  now = 0;
  /** Whose turn it is; `undefined`: that of the world outside of the processes. */
  process: SimulatedProcess | undefined;
  /** Called each time that a process waits for the next turn of its event loop: it may be paused there. */
  onTurn: ((process: SimulatedProcess) => void) | undefined;
  readonly random: () => number;
  /** The next one is the last. */
  private readonly timers: Timer[] = [];
  private order = 0;

  constructor(seed: number) {
    this.random = randomOf(seed);
  }

  /** Runs it after so many milliseconds of true time, when the process can. */
  in(delay: number, process: SimulatedProcess | undefined, run: () => void, due = -Infinity): Timer {
    const timer: Timer = { time: this.now + delay, order: this.order++, process, due, run, isCleared: false, unref: () => timer };
    this.add(timer);
    return timer;
  }

  /** As the process. */
  as<T>(process: SimulatedProcess, run: () => T): T {
    const before = this.process;
    this.process = process;
    try {
      return run();
    } finally {
      this.process = before;
    }
  }

  pick<T>(...of: readonly T[]): T {
    return of[Math.floor(this.random() * of.length)]!;
  }

  /** Until so much true time has passed. `begin` is called when the clocks are in place. */
  async run(until: number, begin: () => void): Promise<void> {
    const putBack = this.replaceGlobals();
    try {
      begin();
      for (let timer = this.timers.pop(); timer && timer.time <= until; timer = this.timers.pop()) {
        const { process, due, isCleared } = timer;
        if (isCleared || process?.isDead) continue;
        // It may have been paused since, and its clock may have stood still.
        const earliest = process ? Math.max(process.runsAgainAt, process.reaches(due)) : 0;
        if (earliest > timer.time) {
          timer.time = earliest;
          this.add(timer);
          continue;
        }
        this.now = timer.time;
        this.process = process;
        timer.run();
        // When all promises have been followed up.
        await new Promise<void>((resolve) => nextTick(resolve));
      }
    } finally {
      this.process = undefined;
      putBack();
    }
  }

  private add(timer: Timer): void {
    let [low, high] = [0, this.timers.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.timers[middle]!;
      if (other.time > timer.time || (other.time === timer.time && other.order > timer.order)) low = middle + 1;
      else high = middle;
    }
    this.timers.splice(low, 0, timer);
  }

  private replaceGlobals(): () => void {
    const { setTimeout, clearTimeout, setImmediate } = globalThis;
    const { now } = Date;
    const { random } = Math;
    Object.defineProperty(performance, 'now', { configurable: true, value: () => this.process?.now ?? this.now });
    Date.now = () => Math.floor(START + this.now + (this.process?.wall ?? 0));
    Math.random = this.random;
    Object.assign(globalThis, {
      setTimeout: (run: () => void, delay = 0) => {
        const { process } = this;
        return this.in(delay / (process?.speed ?? 1), process, run, process && process.now + delay + 1e-6);
      },
      clearTimeout: (timer?: Timer) => {
        if (timer) timer.isCleared = true;
      },
      setImmediate: (run: () => void) => {
        if (this.process) this.onTurn?.(this.process);
        return this.in(0, this.process, run);
      },
    });
    return () => {
      Reflect.deleteProperty(performance, 'now');
      Date.now = now;
      Math.random = random;
      Object.assign(globalThis, { setTimeout, clearTimeout, setImmediate });
    };
  }
}

/** mulberry32 */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
