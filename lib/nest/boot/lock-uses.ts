import { LockConfigError } from '../../core/model/errors.js';
import { DECORATORS, type LockDefinition } from '../decorators/lock-definition.js';
import type { LockKind } from '../distributed-lock.options.js';
import type { LockPlan } from '../aspect/lock-plan.js';

/** The kind of lock by the kind of decorator. Readers and writers share one kind of lock. */
const MADE: Record<Exclude<LockKind, 'leader'>, string> = {
  mutex: 'a mutex',
  read: 'a read/write lock',
  write: 'a read/write lock',
  semaphore: 'a semaphore',
};

/** Finds methods that use one key as different kinds of lock, as far as the keys are known at boot. */
export class LockUses {
  private readonly uses = new WeakMap<object, Map<string, LockDefinition>>();

  /**
   * @returns a startup warning, if semaphores of one key have different numbers of permits.
   * @throws {LockConfigError} if another method uses the key as another kind of lock.
   */
  add(definition: LockDefinition, store: object, { key, parts }: LockPlan): string | undefined {
    const { kind, where, options } = definition;
    if (kind === 'leader') return undefined;
    let uses = this.uses.get(store);
    if (!uses) this.uses.set(store, (uses = new Map<string, LockDefinition>()));
    // Keys whose parts are built in different ways are hardly ever equal.
    const id = `${parts} ${key}`;
    const other = uses.get(id);
    if (!other) {
      uses.set(id, definition);
      return undefined;
    }
    const made = MADE[other.kind as keyof typeof MADE];
    if (made !== MADE[kind]) {
      throw new LockConfigError(
        `${where}: the key "${key}" would be ${MADE[kind]}, but is ${made} by ${other.where}. One key is one kind of lock: ` +
          `give ${DECORATORS[kind]} another "value" or "prefix".`,
        { key },
      );
    }
    if (kind !== 'semaphore' || options.permits === other.options.permits) return undefined;
    return (
      `${where}: "${key}" has ${options.permits} permits here, but ${other.options.permits} by ${other.where}: ` +
      'it has as many as the last call said. Give both the same number.'
    );
  }
}
