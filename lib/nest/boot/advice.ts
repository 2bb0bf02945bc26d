import type { WarningCode } from '../../core/model/lock-log.js';
import type { LockPlan } from '../aspect/lock-plan.js';
import type { LockDefinition } from '../decorators/lock-definition.js';
import type { DistributedLockOptions } from '../distributed-lock.options.js';

/** A likely mistake that is found at startup. */
export type Advice = readonly [code: WarningCode, line: string];

/** A lock of a method in this app. */
export interface Use {
  readonly definition: LockDefinition;
  readonly plan: LockPlan;
}

export function advise({ log, name }: LockPlan, ...advice: readonly (Advice | undefined)[]): void {
  for (const each of advice) if (each) log.warn(...each, { key: name });
}

const PLACEHOLDER = /[$#]\{[^}]*\}?/;
const PLACEHOLDER_OR_ID = /[$#]\{[^}]*\}?|:(id|[a-z]\w*(Id|ID|_id))\b/;
/** Milliseconds. Longer leases are meant for long work, which needs none, because a lease is renewed. */
const LONG_LEASE = 3_600_000;

/**
 * @param parts the arguments in the key, where there are any.
 * @param isRenewed if not, the lease has to last for the whole work.
 */
export function adviceOnOptions(
  where: string,
  { prefix = '', value = '', keyTimeout = 0 }: DistributedLockOptions,
  parts: LockPlan['parts'],
  isRenewed = true,
): Advice[] {
  const advice: Advice[] = [];
  // A colon is also a usual separator: where arguments are in the key, `order:id` may be a name.
  const [text] = (parts ? PLACEHOLDER : PLACEHOLDER_OR_ID).exec(prefix + value) ?? [];
  if (text !== undefined) {
    const line = `${where}: "${text}" in "prefix" or "value" is plain text: one lock for all calls, whatever is meant. Give a "key" function.`;
    advice.push(['NDL_KEY_TEXT', line]);
  }
  if (keyTimeout > LONG_LEASE && isRenewed) {
    const line =
      `${where}: after a crash a keyTimeout of ${keyTimeout} ms keeps the key taken for so long. ` +
      'Work may be longer than its keyTimeout, because the lease is renewed: give a short one.';
    advice.push(['NDL_LONG_LEASE', line]);
  }
  return advice;
}

const OF_QUERY = { 1: '@Context()', 2: '@Info()' };
/**
 * The decorators of parameters that differ from request to request, by the metadata that marks a handler and by the number that Nest gives to each.
 * Nest's constants for both have other import paths in each of its versions.
 */
const OF_REQUEST: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  path: {
    ...{ 0: '@Req()', 1: '@Res()', 2: '@Next()', 6: '@Headers()', 7: '@Session()', 8: '@UploadedFile()', 9: '@UploadedFiles()' },
    ...{ 11: '@Ip()', 14: '@Cookies()', 15: '@SignedCookies()' },
  },
  'microservices:pattern': { 6: '@Ctx()' },
  'websockets:message_mapping': { 0: '@ConnectedSocket()', 13: '@Ack()' },
  'graphql:resolver_type': OF_QUERY,
  'graphql:resolve_property': OF_QUERY,
  'graphql:resolve_reference': OF_QUERY,
};

/** A path into a request that leads to all of its headers, its session… */
const TO_ALL = /\.(rawHeaders|headers|session|ips?|files?|cookies|signedCookies)$/;

/** @param prototype of the class that declares the method. */
export function adviceOnParameters(prototype: object, { definition: { method, where }, plan: { parts } }: Use): Advice | undefined {
  if (!parts || typeof parts === 'function') return undefined;
  const handler = ownFunction(prototype, method);
  const mark = handler && Object.keys(OF_REQUEST).find((each) => Reflect.hasMetadata(each, handler));
  if (!mark) return undefined;
  const parameters = Reflect.getMetadata('__routeArguments__', prototype.constructor, method) as object | undefined;
  for (const [parameter, { data }] of Object.entries(parameters ?? {}) as [string, { data?: unknown }][]) {
    const [type = '', index = ''] = parameter.split(':');
    const decorator = OF_REQUEST[mark]?.[type];
    // `@Headers('x-shop')` is one value, which was chosen. The name of a file is that of its field.
    if (!decorator || (typeof data === 'string' && !decorator.startsWith('@Uploaded'))) continue;
    const isInKey = (path: string) => path === index || (path.startsWith(`${index}.`) && TO_ALL.test(path));
    if (parts !== true && !parts.some(isInKey)) continue;
    return [
      'NDL_KEY_OF_REQUEST',
      `${where}: paramLock makes argument ${index}, ${decorator}, part of the key, which then differs from request to request: the calls do not exclude ` +
        "each other. Name the arguments that they share, such as paramLock: ['0'], or give a key function.",
    ];
  }
  return undefined;
}

/** The decorators of `@nestjs/schedule` whose ticks all instances have at the same time, by their metadata. Not `@Timeout`: instances start one after the other. */
const SCHEDULES: Readonly<Record<string, string>> = { SCHEDULE_CRON_OPTIONS: '@Cron', SCHEDULE_INTERVAL_OPTIONS: '@Interval' };

/** @param uses the locks of one method. If one of them lets the other instances skip a tick, those above it and below it may wait. */
export function adviceOnSchedule(prototype: object, [use, ...inner]: readonly Use[]): Advice | undefined {
  const handler = use && ownFunction(prototype, use.definition.method);
  const mark = handler && Object.keys(SCHEDULES).find((each) => Reflect.hasMetadata(each, handler));
  if (!mark || ![use, ...inner].every(waits)) return undefined;
  return [
    'NDL_CRON_WAITS',
    `${use.definition.where}: every instance waits for the lock of a tick of ${SCHEDULES[mark]}, so each may run the job, one after the other. ` +
      'Use @CronLock(): one instance runs it, the others skip it.',
  ];
}

/** Whether the next instance is still waiting when the key is free again. Readers and the holders of permits are meant to run together. */
function waits({ definition: { kind }, plan: { options } }: Use): boolean {
  const { waitTimeout, retryCount, retryInterval, minHold } = options;
  const patience = waitTimeout ?? (retryCount === 0 ? Infinity : 2 * (retryCount - 1) * retryInterval);
  return (kind === 'mutex' || kind === 'write') && patience > minHold;
}

/** Read from the descriptor, so that a getter does not run. */
export function ownFunction(prototype: object, method: string | symbol): ((...args: never[]) => unknown) | undefined {
  const value: unknown = Reflect.getOwnPropertyDescriptor(prototype, method)?.value;
  return typeof value === 'function' ? (value as () => unknown) : undefined;
}
