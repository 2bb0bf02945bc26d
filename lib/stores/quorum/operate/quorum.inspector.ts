import { asStoreError, StoreError, type LockError } from '../../../core/model/errors.js';
import type { HolderState, Inspector, KeyState, SeizeRequest, WaiterState } from '../../../core/store/inspector.js';
import { inTime } from '../../../core/util/clock.js';
import { outageOf } from '../quorum.ballot-rounds.js';
import type { Member } from '../quorum.member.js';
import { isQueueLock, queueLockOf, waiterOf } from '../quorum.queue-lock.js';
import { leaseToken, majorityOf } from '../quorum.votes.js';

/** Most holders and waiters of a key that are shown. */
const MOST = 100;

/** The questions of operators, as a majority of the members answers them. */
export class QuorumInspector implements Inspector {
  private readonly majority: number;

  constructor(
    private readonly members: readonly Member[],
    private readonly memberTimeout: number,
  ) {
    this.majority = majorityOf(members.length);
  }

  async inspect(keys: readonly string[]): Promise<KeyState[]> {
    const names = [keys, ...([0, 1] as const).map((rank) => keys.map((key) => queueLockOf({ key, owner: '' }, rank).key))];
    const looks = await this.all(keys[0] ?? '', (inspector) => Promise.all(names.map((some) => inspector.inspect(some))));
    return keys.map((_, index) => {
      const [states, ...queueLocks] = names.map((_name, kind) => looks.map((look) => look[kind]?.[index] as KeyState)) as [KeyState[]];
      return this.stateOf(states, queueLocks.flat());
    });
  }

  async *keys(prefix: string): AsyncGenerator<readonly string[]> {
    const votes: (LockError | undefined)[] = this.members.map(() => undefined);
    for (const [index, { store }] of this.members.entries()) {
      try {
        for await (const keys of store.inspector!.keys(prefix, false)) yield keys.filter((key) => !isQueueLock(key));
      } catch (cause) {
        votes[index] = asStoreError(cause, prefix);
        // Each key that a majority has is one of a member that has answered.
        if (votes.filter(Boolean).length > this.members.length - this.majority) throw outageOf(prefix, votes);
      }
    }
  }

  /** An owner that has no majority any more loses the key with its next renewal. Its token is compared before. */
  async seize({ token, ...request }: SeizeRequest): Promise<boolean> {
    const { key } = request;
    if (token !== undefined && (await this.inspect([key]))[0]?.fencingToken !== token) return false;
    return (await this.all(key, (inspector) => inspector.seize({ ...request, token: undefined }))).includes(true);
  }

  async note(line: string): Promise<void> {
    await this.all('', (inspector) => inspector.note(line));
  }

  /** @throws {LockError} if no majority answers. */
  private async all<Answer>(key: string, ask: (inspector: Inspector) => Promise<Answer>): Promise<Answer[]> {
    const votes = await Promise.all(
      this.members.map((member) => {
        const late = (): StoreError => new StoreError(`${member.title} did not answer in time.`, { key, transient: true });
        const answer = member.send(key, () => ask(member.store.inspector!));
        return inTime(this.memberTimeout, answer, late).then(
          (given) => ({ given }),
          (error: LockError) => error,
        );
      }),
    );
    const answers = votes.flatMap((vote) => ('given' in vote ? [vote.given] : []));
    if (answers.length >= this.majority) return answers;
    throw outageOf(
      key,
      votes.map((vote) => ('given' in vote ? 'answered' : vote)),
    );
  }

  /** Where members do not answer, it shows who may hold the key. */
  private stateOf(states: readonly KeyState[], queueLocks: readonly KeyState[]): KeyState {
    const silent = this.members.length - states.length;
    const holders = groupsOf(states)
      .filter((group) => group.length + silent >= this.majority)
      .map((group) => this.holderOf(group));
    const [first] = holders;
    const own = first ? states.filter((state) => state.holders.some(({ owner }) => owner === first.owner)) : states;
    const isForeign = states.filter(({ kind }) => kind === 'foreign').length >= this.majority;
    const tokens = own.map(({ fencingToken }) => fencingToken);
    const waiters = waitersOf(states, queueLocks).filter(({ owner }) => !holders.some((holder) => holder.owner === owner));
    return {
      key: states[0]!.key,
      kind: first ? own[0]!.kind : isForeign ? 'foreign' : 'free',
      at: states.map(({ at }) => at).sort((a, b) => a - b)[states.length >> 1]!,
      fencingToken: first ? leaseToken(tokens) : Math.max(...tokens.map(Number)) || null,
      remaining: first ? Math.max(...holders.map(({ remaining }) => remaining ?? Infinity)) : null,
      holders: holders.slice(0, MOST),
      holderCount: holders.length < MOST ? holders.length : Math.max(...own.map(({ holderCount }) => holderCount)),
      waiters: waiters.slice(0, MOST),
      waiterCount: waiters.length,
    };
  }

  /** The lease lasts as long as a majority has it. */
  private holderOf(group: readonly HolderState[]): HolderState {
    const [holder] = group as [HolderState];
    const ends = group.map(({ remaining }) => remaining ?? Infinity).sort((a, b) => a - b);
    const remaining = ends[Math.max(0, ends.length - this.majority)] as number;
    const phase = group.every((each) => each.phase === 'kept') ? 'kept' : 'held';
    return { ...holder, phase, remaining: remaining === Infinity ? null : remaining };
  }
}

/** The states of each holder at the members. */
function groupsOf(states: readonly KeyState[]): HolderState[][] {
  const groups = new Map<string, HolderState[]>();
  for (const holder of states.flatMap(({ holders }) => holders)) groups.set(holder.owner, [...(groups.get(holder.owner) ?? []), holder]);
  return [...groups.values()];
}

/** The owners that queue at a member or wait for the queue lock. */
function waitersOf(states: readonly KeyState[], queueLocks: readonly KeyState[]): WaiterState[] {
  const waiters = new Map<string, WaiterState>();
  const add = (waiter: WaiterState): unknown => waiters.has(waiter.owner) || waiters.set(waiter.owner, waiter);
  for (const { waiters: queued } of states) queued.forEach(add);
  for (const { at, holders, waiters: queued } of queueLocks) {
    for (const { owner, since } of [...holders, ...queued])
      add({ owner: waiterOf(owner), since: since ?? at, permits: Infinity, holding: [], isHeard: true });
  }
  return [...waiters.values()].sort((one, other) => one.since - other.since);
}
