import type { DistributedLockOptions, LockableMethod, LockDecorator } from 'nestjs-distributed-lock';
import { currentLease, DistributedLock } from 'nestjs-distributed-lock';

/** Options of locks that no slow machine loses, and that are waited for. */
export const LONG = { keyTimeout: 60_000, waitTimeout: 20_000, retryInterval: 5 };

/** The key of the lock that the caller is in. */
export const key = (): string => currentLease()?.key ?? 'unlocked';

/** Where the lock stands among a method's decorators. */
export type Order = 'above' | 'below';

/** One line of the list in docs/integrations.md: the lock is proven above the framework's own decorator and below it. Literals only: the list is read from the source. */
export function aboveAndBelow(group: string, where: string, prove: (order: Order) => void): void {
  describe.each(['above', 'below'] as const)(`${group}: ${where}, the lock %s`, prove);
}

/** One line for what has no decorator of its own. */
export function way(group: string, where: string, prove: () => void): void {
  describe(`${group}: ${where}`, prove);
}

/** The lock and others, as if written on the method in this order; the first of the others is the uppermost. */
export function lockAmong(order: Order, options: DistributedLockOptions, ...others: MethodDecorator[]): LockDecorator<LockableMethod> {
  return among(order, DistributedLock(options), ...others);
}

/** As {@link lockAmong}, with any of our decorators. */
export function among(order: Order, ours: LockDecorator<LockableMethod>, ...others: MethodDecorator[]): LockDecorator<LockableMethod> {
  const lock = ours as MethodDecorator;
  const topDown = order === 'above' ? [lock, ...others] : [...others, lock];
  return (target, method, descriptor) => {
    let current: PropertyDescriptor = descriptor;
    for (const decorate of topDown.reverse()) current = (decorate(target, method, current) as PropertyDescriptor | undefined) ?? current;
    return current as never;
  };
}
