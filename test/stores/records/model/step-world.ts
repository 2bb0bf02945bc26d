import { createHash } from 'node:crypto';
import { StoreError } from '../../../../lib/core/model/errors.js';
import { observedTable } from '../../../../lib/stores/records/observed/observed.table.js';
import { recordDrivers } from '../../../../lib/stores/records/record.drivers.js';
import { TableRecordQueue } from '../../../../lib/stores/records/record.queue.js';
import type { KeyRecord } from '../../../../lib/stores/records/record.work.js';
import { CasMapData } from '../../../support/cas-map-table.js';
import { MapData } from '../../../support/map-table.js';
import type { World } from './explore.js';
import { StepCasTable, StepTable, type Apply, type Exchange, type Steps } from './step-table.js';
import { clock, OFFSET, quiet } from './stopped-clock.js';

/** What may happen besides the steps of the actors. */
export interface Misfortune {
  /** How many exchanges may fail: the request or the reply is lost, or the request arrives late. */
  readonly failures?: number;
  /** How many processes may crash. */
  readonly crashes?: number;
  /** How many moments may come in which all leases run out. */
  readonly pauses?: number;
  /** The first exchange of a process finds out what time it is at the table. */
  readonly isCold?: boolean;
  /** The table has no clock, and each process counts the leases that it sees. Not with pauses: they would not end for all at a time. */
  readonly isObserved?: boolean;
  /** A defect of a table that has one. */
  readonly apply?: Apply | undefined;
}

export const KEY = 'key';
export const TTL = 2_000;
/** Longer than any lease and offer. */
const PAUSE = 3_000;
/** Longer than all that a record keeps. */
const AGE = 1_000_000;
const UNKNOWN = new StoreError('The connection was lost.', { transient: true });
const STAMP = observedTable(new StepCasTable(new CasMapData())).observedTime!().stamp!.slice(0, 12);
const NAMES = new RegExp(`[0-9a-f]{8}-[0-9a-f-]{27}|${STAMP}\\w+`, 'g');
const TOKENS = /\b\d{16}\b/g;

/** What is inside of a recordQueue. */
interface Inside {
  readonly waiting: ReadonlyMap<string, readonly unknown[]>;
  readonly seen: ReadonlyMap<string, unknown>;
  readonly clock: { readonly sample?: object; learn(time: number, sentAt: number): void };
}

export class Process {
  readonly steps: Steps;
  readonly wakeUps: NonNullable<StepTable['wakeUps']>;
  readonly drivers: ReturnType<typeof recordDrivers>;
  readonly inside: Inside;
  isAlive = true;
  /** Whether a reply was lost: so a waiter may not be woken. */
  hasFailed = false;
  /** Exchanges of the requests that are being served. */
  tries = 0;
  /** Who asks, in the order of their requests. */
  readonly asking: Actor[] = [];
  /** Those of the last exchange that was answered. */
  tokens: readonly [first: number, last: number] = [0, 0];

  constructor(data: MapData | CasMapData, apply?: Apply) {
    const table = data instanceof MapData ? new StepTable(data, apply) : new StepCasTable(data);
    this.steps = table.steps;
    this.wakeUps = table.wakeUps!;
    const recordQueue = new TableRecordQueue(table instanceof StepTable ? table : observedTable(table));
    this.drivers = recordDrivers(recordQueue, table);
    this.inside = recordQueue as unknown as Inside;
  }
}

/** One that asks, by the letters of its script. */
export class Actor {
  /** Steps that were done. */
  done = 0;
  isAsking = false;
  isWoken = false;

  constructor(
    readonly id: string,
    readonly process: Process,
    readonly script: string,
  ) {}
}

/** Processes that change one key. The scheduler chooses who asks, whose request arrives, whose reply, and what is lost. */
export abstract class StepWorld<A extends Actor> implements World {
  private readonly data: MapData | CasMapData;
  protected readonly processes: Process[] = [];
  protected readonly actors: A[] = [];
  private readonly left: Record<'failures' | 'crashes' | 'pauses', number>;
  /** What an actor was told that it should not have been. */
  private broken: Error | undefined;

  protected constructor(private readonly misfortune: Misfortune) {
    const { failures = 0, crashes = 0, pauses = 0, isObserved = false } = misfortune;
    this.left = { failures, crashes, pauses };
    this.data = isObserved ? new CasMapData() : Object.assign(new MapData(), { offset: OFFSET });
    clock.reset();
  }

  protected get hasPaused(): boolean {
    return this.left.pauses < (this.misfortune.pauses ?? 0);
  }

  /** What is stored of the key, and has not ended. In observed time nothing ends, as there are no pauses. */
  protected get record(): KeyRecord | undefined {
    const { data } = this;
    if (data instanceof MapData) {
      const { record = null, endsAt = 0 } = data.rows.get(KEY) ?? {};
      return record === null || endsAt <= clock.time + OFFSET ? undefined : (JSON.parse(record) as KeyRecord);
    }
    const { record } = JSON.parse(data.rows.get(KEY)?.text ?? '{"record":null}') as { record: KeyRecord | null };
    if (record && 'holds' in record) for (const hold of record.holds) hold.endsAt = Infinity;
    return record ?? undefined;
  }

  actions(): string[] {
    const { failures, crashes, pauses } = this.left;
    const actions: string[] = [];
    for (const [index, actor] of this.actors.entries()) {
      if (actor.process.isAlive && !actor.isAsking && this.nextStep(actor)) actions.push(`asks ${index}`);
    }
    for (const [number, { steps, isAlive }] of this.processes.entries()) {
      for (const [index, { found, isGhost }] of steps.exchanges.entries()) {
        const name = `${number}.${index}`;
        actions.push(`${found ? 'is answered' : 'arrives'} ${name}`);
        if (failures > 0 && !isGhost) actions.push(`fails ${name}`);
      }
      if (crashes > 0 && isAlive) actions.push(`crashes ${number}`);
    }
    if (pauses > 0 && actions.length > 0) actions.push('pause');
    return actions;
  }

  async act(action: string): Promise<void> {
    const [, verb = '', name = ''] = /^(.*?) ?([\d.]*)$/.exec(action)!;
    const [number, index] = name.split('.').map(Number) as [number, number];
    if (verb === 'asks') {
      const actor = this.actors[number]!;
      actor.isAsking = true;
      actor.isWoken = false;
      actor.process.asking.push(actor);
      this.ask(actor, this.nextStep(actor)!);
    } else if (verb === 'pause') {
      this.left.pauses--;
      clock.time += PAUSE;
    } else if (verb === 'crashes') this.crash(this.processes[number]!);
    else this.goOn(verb, this.processes[number]!, this.processes[number]!.steps.exchanges[index]!);
    await quiet();
    if (this.broken) throw this.broken;
    for (const { isAlive, asking, steps } of this.processes) {
      if (!isAlive || asking.length === 0 || steps.exchanges.some(({ isGhost }) => !isGhost)) continue;
      throw new Error(`${asking.map(({ id }) => id).join(' and ')} gets no answer`);
    }
  }

  state(): string {
    const names = new Map<string, number>();
    const text = JSON.stringify([clock.time, this.left, [...this.data.rows], this.processes.map(stateOf), this.actors.map(ownOf)]);
    // Of tokens only the order counts.
    const tokens = [...new Set(text.match(TOKENS)?.map(Number)), (clock.time + OFFSET) * 1000].sort((a, b) => a - b);
    const renamed = text
      .replace(NAMES, (name) => `#${names.get(name) ?? names.set(name, names.size).size - 1}`)
      .replace(TOKENS, (token) => `t${tokens.indexOf(Number(token)) - tokens.length}`);
    return createHash('sha1').update(renamed).digest('base64');
  }

  abstract check(): void;
  abstract end(): Promise<void>;

  async begin(): Promise<this> {
    for (const { wakeUps, inside } of this.processes) {
      await wakeUps.open(() => undefined);
      if (!this.misfortune.isCold) inside.clock.learn(clock.time + OFFSET, clock.time);
    }
    for (const actor of this.actors) actor.process.wakeUps.listen(actor.id, () => (actor.isWoken = true));
    return this;
  }

  protected processAt(index: number): Process {
    return (this.processes[index] ??= new Process(this.data, this.misfortune.apply));
  }

  /** What it asks for next; `undefined`: nothing. */
  protected abstract nextStep(actor: A): string | undefined;
  protected abstract ask(actor: A, step: string): void;

  protected fail(message: string): void {
    this.broken ??= new Error(message);
  }

  protected settled<T>(actor: A, request: Promise<T>, answered: (reply: T) => void, failed: () => void): void {
    const settle = (then: () => void): void => {
      const { process } = actor;
      if (!process.isAlive) return;
      actor.isAsking = false;
      process.tries = 0;
      process.asking.splice(process.asking.indexOf(actor), 1);
      then();
    };
    request.then(
      (reply) => settle(() => answered(reply)),
      (error: Error) => settle(() => (error instanceof StoreError && error.transient ? failed() : this.fail(String(error.stack)))),
    );
  }

  /** After a long time, by another process. */
  protected async later<T>(ask: (process: Process) => Promise<T>): Promise<T> {
    const stranger = new Process(this.data);
    const { steps, drivers } = stranger;
    // In observed time it must have seen what it is to see the end of.
    await this.allOf(steps, drivers.mutex.check({ key: KEY, owner: 'stranger' }));
    clock.time += AGE;
    return this.allOf(steps, ask(stranger));
  }

  private async allOf<T>(steps: Steps, request: Promise<T>): Promise<T> {
    let reply: { value: T } | { error: unknown } | undefined;
    request.then(
      (value) => (reply = { value }),
      (error: unknown) => (reply = { error }),
    );
    for (let turn = 0; turn < 5 && !reply; turn++) {
      await quiet();
      for (const exchange of [...steps.exchanges]) {
        steps.arrive(exchange);
        steps.answer(exchange);
      }
      await quiet();
    }
    if (reply && 'value' in reply) return reply.value;
    throw new Error(`a stranger gets ${reply ? String(reply.error) : 'no answer'} at the end`);
  }

  private goOn(verb: string, process: Process, exchange: Exchange): void {
    const { steps } = process;
    if (verb === 'arrives') return steps.arrive(exchange);
    if (verb === 'fails') {
      this.left.failures--;
      process.hasFailed = true;
      return steps.fail(exchange, UNKNOWN);
    }
    process.tries++;
    process.tokens = exchange.tokens;
    steps.answer(exchange);
  }

  private crash(process: Process): void {
    this.left.crashes--;
    process.isAlive = false;
    for (const exchange of [...process.steps.exchanges]) process.steps.abandon(exchange);
  }
}

function stateOf({ inside, isAlive, hasFailed, tries, asking, steps }: Process): unknown {
  const exchanges = steps.exchanges.map(({ change, found, isGhost }) => [change, found, isGhost]);
  if (!isAlive) return exchanges;
  const { seen, waiting, clock: known } = inside;
  return [hasFailed, tries, asking.map(({ id }) => id), exchanges, seen.get(KEY), waiting.get(KEY)?.length, known.sample];
}

/** What is known of it but its process. */
const ownOf = (actor: Actor): unknown => ({ ...actor, process: undefined });
