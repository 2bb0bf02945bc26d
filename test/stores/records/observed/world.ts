import type { LockStore } from '../../../../lib/core/store/lock-store.js';
import { recordStore } from '../../../../lib/stores/records/record.store.js';
import type { LeaseRecord } from '../../../../lib/stores/records/record.work.js';
import { observedTable } from '../../../../lib/stores/records/observed/observed.table.js';
import { LatchUser, type LatchRound } from './latch-user.js';
import { LockUser, LOOK_INTERVAL, pause } from './lock-user.js';
import { Promises, type Sent, type Tenure } from './promises.js';
import { SimulatedStore, SimulatedTable } from './simulated-store.js';
import { SimulatedProcess, SimulatedTime } from './simulated-time.js';

export interface WorldOptions {
  readonly seed: number;
  /** True time that passes, milliseconds. */
  readonly span: number;
  /** Clocks are faster or slower than true time by this share at most. */
  readonly drift?: number;
  /** The store counts its writes. */
  readonly isCounted?: boolean;
  /** The network loses nothing, and nobody is paused; but processes die. */
  readonly isCalm?: boolean;
  /** Four times as much is lost and late. */
  readonly isStormy?: boolean;
  /** Clocks stand still in half of the pauses. */
  readonly isSuspended?: boolean;
  /** Nobody is woken. */
  readonly isPolled?: boolean;
  /** The store is restored from a copy of some seconds before, again and again. */
  readonly isRestored?: boolean;
  /** Nobody uses a lock for more than an hour in between, so that rows are swept. */
  readonly hasLull?: boolean;
}

/** A process with its store. */
export interface Member {
  readonly process: SimulatedProcess;
  readonly table: SimulatedTable;
  readonly store: LockStore;
}

const MEMBERS = 4;
const LULL = 70 * 60_000;

/** Some processes that use locks of one store, and what becomes of the promises. */
export class World {
  readonly time: SimulatedTime;
  readonly promises: Promises;
  readonly simulated: SimulatedStore;
  /** The round of the latch that is under way. */
  round: LatchRound | undefined;
  renewals = 0;
  countedDown = 0;
  /** Of leases that ran out, by who waited. */
  takeOvers = 0;
  private members: Member[] = [];
  private made = 0;
  private latches = 0;
  private lullEndsAt = -Infinity;
  /** The last holder of the mutex, and how many processes may have been offered it after its last renewal and be dead. */
  private lastHolder: { readonly tenure: Tenure; dead: number } | undefined;

  private constructor(private readonly options: WorldOptions) {
    const { seed, isCounted = true, isCalm = false, isStormy = false } = options;
    const share = isCalm ? 0 : isStormy ? 4 : 1;
    this.time = new SimulatedTime(seed);
    this.simulated = new SimulatedStore(this.time, { lost: 0.01 * share, late: 0.02 * share }, isCounted);
    this.promises = new Promises(
      () => this.time.now,
      () => this.simulated.restores,
    );
    if (!isCalm) {
      this.time.onTurn = (process) => {
        if (this.time.random() < 0.002) this.pause(process);
      };
    }
  }

  static async run(options: WorldOptions): Promise<World> {
    const world = new World(options);
    await world.time.run(options.span + (options.hasLull ? LULL : 0), () => world.begin());
    return world;
  }

  /** The key of the latch. */
  get latch(): string {
    return `latch ${this.latches}`;
  }

  get drift(): number {
    return this.options.drift ?? 0.005;
  }

  /** On the clock of the process. */
  async rest(milliseconds: number): Promise<void> {
    await pause(milliseconds);
    while (this.time.now < this.lullEndsAt) await pause(this.lullEndsAt - this.time.now + 1);
  }

  sent({ process }: Member, key: string): Sent {
    const { now: sentAt } = this.time;
    return { sentAt, local: process.now, stops: process.stops, era: this.era, token: this.promises.tokens.get(key) ?? 0 };
  }

  taken(tenure: Tenure, token: number, last: number, permits: number, isReader: boolean, waitsSince: number): void {
    this.promises.granted(tenure, token, last, permits, isReader);
    if (tenure.key !== 'mutex') return;
    if (this.options.isCalm) this.checkTakeOver(tenure, waitsSince);
    this.lastHolder = { tenure, dead: this.deadInQueue };
  }

  renewed(tenure: Tenure, sent: Sent, ttl: number): void {
    tenure.confirm(sent, ttl);
    this.renewals++;
    if (this.lastHolder?.tenure === tenure) this.lastHolder.dead = this.deadInQueue;
  }

  extended(tenure: Tenure, token: number): void {
    const { promises } = this;
    if (!tenure.isValid(this.simulated.restores)) return;
    if (token <= tenure.token) promises.fail(`${tenure.owner} gets token ${token} of ${tenure.key} after ${tenure.token}`);
    promises.tokens.set(tenure.key, Math.max(token + 1, promises.tokens.get(tenure.key) ?? 0));
    tenure.token = token + 1;
  }

  kept(tenure: Tenure, sentAt: number, keepFor: number): void {
    if (this.era === this.simulated.restores) this.promises.keeps(tenure, sentAt + keepFor / (1 + this.drift) - 0.001);
  }

  kill({ process }: Member): undefined {
    process.isDead = true;
    if (this.lastHolder) this.lastHolder.dead++;
    this.time.in(this.time.random() * 2000, undefined, () => this.startMember());
    // Whether its last operation was made is unknown.
    this.latches++;
    this.round = undefined;
  }

  private begin(): void {
    const { span, hasLull, isCalm, isRestored } = this.options;
    for (let index = 0; index < MEMBERS; index++) this.startMember();
    if (!isCalm) this.makeTrouble();
    if (isRestored) this.restoreAgain();
    if (hasLull) {
      this.time.in(span / 2, undefined, () => {
        this.lullEndsAt = this.time.now + LULL;
        // The latch is forgotten meanwhile.
        this.latches++;
        this.round = undefined;
      });
    }
  }

  private startMember(): void {
    const { time, drift, simulated, options } = this;
    const name = `p${++this.made}`;
    const share = time.random() < 0.5 ? time.pick(-1, 1) : 2 * time.random() - 1;
    const process = new SimulatedProcess(time, name, 1 + drift * share, 2000 * (time.random() - 0.5));
    this.members = this.members.filter((member) => !member.process.isDead);
    time.as(process, () => {
      const table = new SimulatedTable(simulated, process, !options.isPolled);
      const store = recordStore(observedTable(table));
      const member = { process, table, store };
      this.members.push(member);
      for (const letter of ['a', 'b']) this.start(new LockUser(this, member, `${name}:${letter}`));
      if (!options.isRestored) this.start(new LatchUser(this, member));
      if (options.hasLull) this.start({ run: () => this.lookNowAndThen(store) });
    });
  }

  private start(user: { run(): Promise<void> }): void {
    user.run().catch((error: unknown) => this.promises.fail(String((error as Error).stack)));
  }

  /** Sweeps are made with requests. */
  private async lookNowAndThen(store: LockStore): Promise<void> {
    for (;;) {
      await pause(120_000);
      await store.mutex.check({ key: 'looked at', owner: 'nobody' }).catch(() => undefined);
    }
  }

  private makeTrouble(): void {
    const { time } = this;
    time.in(50 + time.random() * 1000 + Math.max(0, this.lullEndsAt - time.now), undefined, () => {
      const member = time.pick(...this.members);
      if (member.process.isDead) return this.makeTrouble();
      if (time.random() < 0.03) this.kill(member);
      else this.pause(member.process);
      this.makeTrouble();
    });
  }

  private pause(process: SimulatedProcess): void {
    const { time, options } = this;
    // Who is paused for too long does not notice a restore.
    const milliseconds = time.pick(5, 50, 200, 1500, options.isRestored ? 1000 : 4000);
    process.pause(milliseconds, options.isSuspended && time.random() < 0.5);
  }

  private restoreAgain(): void {
    const { simulated, promises, time } = this;
    time.in(4000, undefined, () => {
      const restore = simulated.copy();
      time.in(2000 + 3000 * time.random(), undefined, () => {
        simulated.isAway = true;
        time.in(100 + 2000 * time.random(), undefined, () => {
          restore();
          simulated.isAway = false;
          promises.restored();
          this.restoreAgain();
        });
      });
    });
  }

  /** The restores of the store, when every process has heard of the last one, and nothing is under way that was sent before. */
  private get era(): number | undefined {
    const { restores, underWay, isUnnoticed } = this.simulated;
    if (restores === 0) return 0;
    if (isUnnoticed) return undefined;
    const isKnown = this.members.every(({ process, table }) => process.isDead || table.restores === restores);
    return isKnown && [...underWay].every((request) => request.restores === restores) ? restores : undefined;
  }

  /** How many processes that have died are in the queue of the mutex. */
  private get deadInQueue(): number {
    const { record } = JSON.parse(this.simulated.rows.get('mutex')?.text ?? '{}') as { record?: LeaseRecord | null };
    const inboxes = new Set(record?.queue.map(({ inbox }) => inbox));
    for (const { process } of this.members) if (!process.isDead) inboxes.delete(process.name);
    return inboxes.size;
  }

  /** A key that ran out is taken by who has waited for it all the time. */
  private checkTakeOver({ owner }: Tenure, waitsSince: number): void {
    if (!this.lastHolder) return;
    const { tenure, dead } = this.lastHolder;
    if (tenure.isOver || waitsSince > tenure.sentAt) return;
    this.takeOvers++;
    // The last renewal and its end are seen with the next look, and who is dead may have been offered the key for a second.
    const late = this.time.now - tenure.endsBy - 2 * LOOK_INTERVAL - 200 - 1000 * dead;
    if (late > 0) this.promises.fail(`${owner} gets the key of ${tenure.owner} ${late.toFixed(1)} ms too late, and ${dead} are dead`);
  }
}
