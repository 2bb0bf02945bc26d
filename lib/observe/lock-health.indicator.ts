import { Inject, Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import * as terminus from '@nestjs/terminus';
import { checkOptions, integerFrom, ofType } from '../core/model/check-options.js';
import { configError } from '../core/model/errors.js';
import type { LocksHealth } from '../core/model/doctor-report.js';
import type { Locks } from '../locks.js';
import { DEFAULT_NAME, locksToken } from '../nest/distributed-lock.tokens.js';

/** Options of {@link LockHealthIndicator.isHealthy}. */
export interface LockHealthOptions {
  /** Name of the registered store. Default `'default'`. */
  store?: string;
  /** Whole milliseconds within which the store must answer. Default: the `requestTimeout` of the store. */
  within?: number;
}

/** The part of a health check's result that describes the locks. Times are milliseconds. */
export interface LockHealthData extends Pick<LocksHealth, 'wakeUps' | 'held' | 'waiting' | 'oldestWait'> {
  /** How long the store took to answer; left out if it did not. */
  readonly roundTrip?: number;
  /** Why the store does not answer, if it does not. */
  readonly message?: string;
  /** Functions that work, but worse than they should; left out if there are none. */
  readonly degraded?: readonly string[];
}

/** A result as Terminus 10, 11 and 12 take it. */
export type LockHealthResult<Key extends string> = Record<Key, LockHealthData & { readonly status: 'up' | 'down' }>;

const CHECKS = { store: ofType('string'), within: integerFrom(1) };

/** Terminus 10 takes "down" by this error only. Later versions do not need it, and the last one does not have it. */
type HealthCheckError = new (message: string, causes: unknown) => Error;

/**
 * A health indicator for `@nestjs/terminus`. It is for readiness, not for liveness: to restart every instance because the store is away makes an outage
 * longer. Put it in the `providers` of the module that has the health controller.
 */
@Injectable()
export class LockHealthIndicator {
  constructor(@Inject(ModuleRef) private readonly app: ModuleRef) {}

  /**
   * Asks as {@link Locks.health}. Down: the store does not answer in time, or refuses. Up, with `degraded`: waiters should be woken but poll,
   * a renewal is unanswered for more than a third of its lease, or the event loop was blocked within the last minute.
   *
   * @param key the name in the result.
   * @throws {LockConfigError} when an option is wrong, or no store has that name.
   */
  async isHealthy<const Key extends string>(key: Key, options: LockHealthOptions = {}): Promise<LockHealthResult<Key>> {
    checkOptions(options, 'LockHealthIndicator', CHECKS);
    const health = await this.locksOf(options.store ?? DEFAULT_NAME).health(options.within);
    const result = { [key]: { ...dataOf(health), status: health.isUp ? 'up' : 'down' } } as LockHealthResult<Key>;
    if (health.isUp || 'HealthIndicatorService' in terminus) return result;
    const HealthCheckError = Reflect.get(terminus, 'HealthCheckError') as HealthCheckError;
    throw new HealthCheckError(`${key} is down`, result);
  }

  private locksOf(name: string): Locks {
    try {
      return this.app.get<Locks>(locksToken(name), { strict: false });
    } catch {
      throw configError('MODULE', `LockHealthIndicator: no store is registered under the name "${name}".`);
    }
  }
}

function dataOf({ roundTrip, error, degraded, wakeUps, held, waiting, oldestWait }: LocksHealth): LockHealthData {
  return {
    ...(roundTrip !== undefined && { roundTrip: Number(roundTrip.toFixed(1)) }),
    ...(error && { message: error.message }),
    ...(degraded.length > 0 && { degraded }),
    wakeUps,
    held,
    waiting,
    oldestWait: Math.round(oldestWait),
  };
}
