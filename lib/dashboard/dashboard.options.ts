import type { CanActivate, ExecutionContext, Type } from '@nestjs/common';
import { checkOptions, ofType, type Checks } from '../core/model/check-options.js';

/** `'view'`: the page, and what it shows. `'release'`: taking keys away, and holding them. */
export type DashboardAction = 'view' | 'release';

/** False, or an error: refused. `by` is the name of the operator in the log, the events and the error of the holder. */
export type Verdict = boolean | { readonly by: string };

/** Options of {@link DistributedLockDashboardModule.forRoot}. */
export interface DistributedLockDashboardOptions {
  /** Decides about each request, after the guards of the app. Required: without it everybody could release locks. */
  authorize: (action: DashboardAction, context: ExecutionContext) => Verdict | Promise<Verdict>;
  /** Path below the global prefix of the app. Default `'locks'`. */
  path?: string;
  /** Guards of the dashboard, by class or instance. Global guards run before. */
  guards?: (CanActivate | Type<CanActivate>)[];
  /** Decorators of its controller, such as `Public()` of the app's own guard. */
  decorators?: ClassDecorator[];
  /** Hides what keys say: the page and its addresses have only this. It must be different for each key. */
  redact?: (key: string) => string;
  /** Origins such as `https://ops.example.com` from which the page is used, where a proxy changes the `Host`. */
  origins?: string[];
}

const isListOf =
  (type: string, ...types: string[]) =>
  (value: unknown): string | undefined =>
    Array.isArray(value) && value.every((each) => types.includes(typeof each)) ? undefined : `an array of ${type}`;
const CHECKS: Checks = {
  authorize: (value) => (typeof value === 'function' ? undefined : 'a function that says who may "view" and who may "release"'),
  path: ofType('string'),
  guards: isListOf('guards', 'object', 'function'),
  decorators: isListOf('decorators', 'function'),
  redact: ofType('function'),
  origins: isListOf('origins', 'string'),
};

/** @throws {LockConfigError} */
export function checkDashboardOptions(options: DistributedLockDashboardOptions): void {
  checkOptions(options ?? null, 'DistributedLockDashboardModule', CHECKS, 'authorize');
}
