/** One metric, as OpenTelemetry describes it. */
export interface Instrument {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly unit: 's' | '{lease}' | '{caller}' | '1';
  readonly description: string;
  readonly attributes: readonly string[];
  /** Upper bounds of a histogram. */
  readonly buckets?: readonly number[];
}

/** Seconds: 1, 2, 5 … ms to a minute. */
const SECONDS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60];
const CALL = ['lock', 'kind', 'store'];

/** All metrics. `lock` is the label of a call, never its key: keys are as many as there are orders. */
const INSTRUMENTS = {
  'distributed_lock.wait.duration': {
    type: 'histogram',
    unit: 's',
    description: 'Time from the call to its lease, or to the end of its wait',
    attributes: [...CALL, 'outcome'],
    buckets: SECONDS,
  },
  'distributed_lock.grants': {
    type: 'counter',
    unit: '{lease}',
    description: 'Leases granted: of a free key, by a hand-over within the process or from another one, or from the store after a wait',
    attributes: [...CALL, 'via'],
  },
  'distributed_lock.hold.duration': {
    type: 'histogram',
    unit: 's',
    description: 'Time from the grant of a lease to its end',
    attributes: [...CALL, 'outcome'],
    buckets: SECONDS,
  },
  'distributed_lock.waiting': {
    type: 'gauge',
    unit: '{caller}',
    description: 'Callers of this process that wait for a lock now, without the standbys of elections',
    attributes: CALL,
  },
  'distributed_lock.held': { type: 'gauge', unit: '{lease}', description: 'Leases that this process holds now', attributes: CALL },
  'distributed_lock.oldest_wait': {
    type: 'gauge',
    unit: 's',
    description: 'For how long the caller waits that has waited longest',
    attributes: CALL,
  },
  'distributed_lock.oldest_hold': {
    type: 'gauge',
    unit: 's',
    description: 'For how long the lease is held that has been held longest',
    attributes: CALL,
  },
  'distributed_lock.lost': {
    type: 'counter',
    unit: '{lease}',
    description: 'Leases that ended before their holders did',
    attributes: [...CALL, 'reason'],
  },
  'distributed_lock.renewal.margin': {
    type: 'histogram',
    unit: '1',
    description: 'Part of the validity of a lease that was left when its renewal was answered; 0.67 is normal',
    attributes: ['kind', 'store'],
    buckets: [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1],
  },
  'distributed_lock.request.duration': {
    type: 'histogram',
    unit: 's',
    description: 'Time from a request to the store to its reply',
    attributes: ['kind', 'store', 'operation', 'outcome'],
    buckets: [0.0005, ...SECONDS.filter((bound) => bound <= 10)],
  },
  'distributed_lock.subscriber': {
    type: 'gauge',
    unit: '1',
    description: '0 while a caller of this process polls for a key that another process has, else 1',
    attributes: ['store'],
  },
  'distributed_lock.leader': {
    type: 'gauge',
    unit: '1',
    description: 'Whether this process leads (1) or stands by (0)',
    attributes: ['store', 'election'],
  },
} as const satisfies Record<string, Instrument>;

/** The name of a metric, as in OpenTelemetry. */
export type InstrumentName = keyof typeof INSTRUMENTS;

type OfType<T extends Instrument['type']> = {
  [Name in InstrumentName]: (typeof INSTRUMENTS)[Name]['type'] extends T ? Name : never;
}[InstrumentName];

/** The metrics that are counted when they are read. */
export type GaugeName = OfType<'gauge'>;

/** The metrics to which each event adds. */
export type RecordedName = OfType<'counter' | 'histogram'>;

export const ALL = Object.entries(INSTRUMENTS) as readonly [InstrumentName, Instrument][];
