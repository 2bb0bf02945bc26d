import { configError } from '../../core/model/errors.js';
import { DECORATORS } from '../decorators/lock-definition.js';
import type { LockKind } from '../distributed-lock.options.js';
import type { Advice, Use } from './advice.js';

/** The kind of lock by the kind of decorator. Readers and writers share one kind of lock. */
const MADE: Record<LockKind, string> = {
  mutex: 'a mutex',
  cron: 'a mutex',
  leader: 'a mutex',
  read: 'a read/write lock',
  write: 'a read/write lock',
  semaphore: 'a semaphore',
};

/** How the arguments are part of the key. */
function builtOf({ parts }: Use['plan']): string {
  if (!parts) return 'without its arguments';
  if (typeof parts === 'function') return 'by a "key" function';
  return `by "paramLock" of ${parts === true ? 'all' : 'some'} arguments`;
}

/** The settings in which all users of a key should agree, with what happens if they do not. */
const DIFFERENCES = {
  permits: 'it has as many as the last call said',
  fair: 'calls that are not fair can overtake those that are',
  policy: 'each call goes by its own',
};

/** Compares the methods that share a `prefix` and a `value`, as far as their keys are known at boot. */
export class LockUses {
  private readonly uses = new WeakMap<object, Map<string, Use>>();

  /**
   * @returns a startup warning, if the methods can hardly mean the same key, or lock it in different ways.
   * @throws {LockConfigError} if another method uses the key as another kind of lock.
   */
  add(use: Use, store: object): Advice | undefined {
    const { kind, where } = use.definition;
    const { name, key } = use.plan;
    const ofStore = this.uses.get(store) ?? new Map<string, Use>();
    this.uses.set(store, ofStore);
    const other = ofStore.get(name);
    if (!other) return void ofStore.set(name, use);
    const and = other.definition.where;
    // Keys whose parts are built in different ways are hardly ever equal.
    const [built, otherBuilt] = [builtOf(use.plan), builtOf(other.plan)];
    if (built !== otherBuilt) {
      return [
        'NDL_KEY_PARTS',
        `${where}: the key "${name}" is completed ${built} here, but ${otherBuilt} by ${and}: ` +
          'the two do not exclude each other. Build both in the same way, or give one of them another "value".',
      ];
    }
    const made = MADE[other.definition.kind];
    if (made !== MADE[kind]) {
      throw configError(
        'KIND',
        `${where}: the key "${key}" would be ${MADE[kind]}, but is ${made} by ${and}. One key is one kind of lock: ` +
          `give ${DECORATORS[kind]} another "value" or "prefix".`,
        { key },
      );
    }
    const [mine, its] = [settingsOf(use), settingsOf(other)];
    for (const [setting, consequence] of Object.entries(DIFFERENCES) as [keyof typeof DIFFERENCES, string][]) {
      if (mine[setting] === its[setting]) continue;
      const line = `${where}: "${key}" has ${setting} ${mine[setting]} here, but ${its[setting]} by ${and}: ${consequence}. Give both the same.`;
      return ['NDL_KEY_SETTINGS', line];
    }
    return undefined;
  }
}

function settingsOf({ definition: { kind, options }, plan }: Use) {
  return {
    permits: kind === 'semaphore' ? options.permits : undefined,
    fair: plan.options.fair,
    policy: kind === 'read' || kind === 'write' ? (options.policy ?? 'fair') : undefined,
  };
}
