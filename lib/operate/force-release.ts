import { randomUUID } from 'node:crypto';
import { configError, LockError, UnsupportedPrimitiveError } from '../core/model/errors.js';
import type { ForceOptions, ForceReply } from '../core/model/key-report.js';
import type { HolderState, KeyState, SeizeRequest } from '../core/store/inspector.js';
import { after, now } from '../core/util/clock.js';
import { listen, send, type Answer, type ProcessEvents, type RevokeRequest } from './messages.js';
import type { Operator } from './operator.js';

/** Milliseconds in which a live process confirms a request. */
const SILENCE = 1000;
/** Milliseconds between two checks whether the holder has released the key. */
const LOOK_INTERVAL = 100;

/** A key that may be taken away, or is free. */
type LockState = KeyState & { readonly kind: SeizeRequest['kind'] | 'free' };

/** Asks the holder to release a key and, if it does not in time, takes it away. */
export async function forceRelease(operator: Operator, key: string, options: ForceOptions): Promise<ForceReply> {
  const { reason, by, token, grace = 5000, keepFor = 0 } = options;
  const { events } = operator.engine.runtime;
  const state = await lookAt(operator, key);
  const { kind, holders, holderCount, fencingToken } = state;
  if (options.owner === undefined && holderCount > 1)
    throw configError('CALL', `"${key}" has ${holderCount} holders: give the "owner" of one of them.`, { key });
  const owner = options.owner ?? holders[0]?.owner;
  const phase = await phaseIn(operator, state, owner);
  if (owner === undefined || !phase || kind === 'free' || (phase === 'kept' && keepFor > 0)) return changed(state);
  if (token !== undefined && token > (fencingToken ?? 0)) return changed(state);
  // A process reserves tokens for its next callers: the store has the last one of them, and only the process knows that of the holder.
  const own = token === fencingToken ? undefined : token;
  const request = { id: randomUUID(), key, owner, token: own, reason, by, isOver: false };
  const wasAsked = phase === 'held' && (grace > 0 || own !== undefined);
  const outcome = wasAsked ? await askBack(operator, request, grace) : 'silent';
  if (outcome === 'released') return { outcome: 'gave back', holder: owner };
  if (outcome === 'changed' || (own !== undefined && outcome !== 'asked')) return changed(await lookAt(operator, key));
  // A holder that was asked is the last one of its owner.
  if (!(await operator.inspector.seize({ key, kind, owner, phase, token: own === undefined ? token : undefined, keepFor }))) {
    const present = await lookAt(operator, key);
    // An owner is never used again: one that was asked and is gone has released the key.
    const isGone = wasAsked && !(await phaseIn(operator, present, owner));
    return isGone ? { outcome: 'gave back', holder: owner } : changed(present);
  }
  const line = `"${key}" is taken from ${owner} by ${by ?? 'an operator'}: ${reason}`;
  // If the holder is in this process, it logs this and emits the event.
  if (!(await ask(operator, { ...request, token: undefined, isOver: true }))) {
    events.warn('NDL_TAKEN', line, { key, owner, token: fencingToken });
    if (events.isHeard('forced')) events.emit('forced', { key, owner, by, reason, token: fencingToken });
  }
  await operator.inspector.note(line).catch((error: unknown) => events.debug(`Could not note that ${line}: ${String(error)}`, { key }));
  return { outcome: 'forced', holder: owner };
}

/** @throws {LockError} if the value cannot be taken away. */
async function lookAt(operator: Operator, key: string): Promise<LockState> {
  const [state] = (await operator.look([key])) as [KeyState];
  if (state.kind === 'foreign') throw configError('CALL', `"${key}" has a value that no lock has written: it is left alone.`, { key });
  if (state.kind === 'count-down latch') throw new UnsupportedPrimitiveError(`"${key}" is a count-down latch: count it down.`, { key });
  return { ...state, kind: state.kind };
}

/** Whether the owner has the key. A state has only the first hundred holders, so the store is asked for another one. */
async function phaseIn({ engine: { store } }: Operator, state: LockState, owner?: string): Promise<HolderState['phase'] | undefined> {
  const { key, kind, holders, holderCount } = state;
  const found = holders.find((each) => each.owner === owner);
  if (found || owner === undefined || holderCount <= holders.length) return found?.phase;
  const reply = await (kind === 'semaphore' ? store.semaphore : store.readWriteLock?.read)?.check({ key, owner });
  return reply?.state === 'held' ? 'held' : undefined;
}

function changed({ holders }: KeyState): ForceReply {
  return { outcome: 'changed', holder: holders[0]?.owner ?? null };
}

/**
 * Asks the holder to release the key. Resolves to `'asked'` if it has not done so within its grace, to `'silent'` if its process does not answer, and to
 * `'changed'` if another caller of its process has the key.
 */
async function askBack(operator: Operator, request: RevokeRequest, grace: number): Promise<'released' | 'asked' | 'silent' | 'changed'> {
  const start = now();
  let answer: 'asked' | 'changed' | undefined;
  const { store, runtime } = operator.engine;
  const receive = (message: Answer | ProcessEvents): void => {
    if ('events' in message) return;
    if (message.ids.includes(request.id)) answer = 'asked';
    else if (message.changed?.includes(request.id)) answer ??= 'changed';
  };
  const stop = store.bus && (await listen(store.bus, runtime.events, receive));
  try {
    for (;;) {
      // Repeated until it is confirmed: the key may have just been offered to the owner, or its process may not listen yet.
      if (!answer) {
        const outcome = await ask(operator, request);
        answer ??= outcome;
      }
      if (answer === 'changed') return answer;
      const left = (answer ? grace : Math.min(grace || SILENCE, SILENCE)) - (now() - start);
      if (left <= 0) return answer ?? 'silent';
      await new Promise<void>((resolve) => after(Math.min(LOOK_INTERVAL, left), resolve));
      const state = await lookAt(operator, request.key).catch((error: unknown) => {
        if (!(error instanceof LockError && error.transient)) throw error;
      });
      if (state && (await phaseIn(operator, state, request.owner)) !== 'held') return 'released';
    }
  } finally {
    stop?.();
  }
}

/** Resolves to the answer of this process, if the owner is one of it. */
async function ask({ engine: { store, runtime }, responder }: Operator, request: RevokeRequest): Promise<'asked' | 'changed' | undefined> {
  const outcome = responder.revoke(request);
  if (outcome) return outcome;
  const { bus } = store;
  if (bus && (await bus.open(...runtime.events.ofInbox))) await send(bus, 'revoke', request).catch(() => undefined);
  return undefined;
}
