/** The oldest version that the tests are run on. */
const OLDEST = '7.0';

/** What a server answers to INFO. */
export class RedisInfo {
  constructor(private readonly text: string) {}

  /** `undefined`: the server does not tell it. */
  field(name: string): string | undefined {
    return new RegExp(`^${name}:([^\\r\\n]+)`, 'm').exec(this.text)?.[1]?.trim();
  }

  /** 0: the server does not tell it. */
  number(name: string): number {
    return Number(this.field(name) ?? 0);
  }

  /** @throws if the server does not tell it. */
  known(name: string): string {
    const value = this.field(name);
    if (value === undefined) throw new Error(`INFO has no ${name}`);
    return value;
  }

  /** Such as `'Redis 7.4.1'`, as far as the server tells. */
  get server(): string {
    const valkey = this.field('valkey_version');
    return [valkey === undefined ? 'Redis' : 'Valkey', valkey ?? this.field('redis_version')]
      .filter((part) => part !== undefined)
      .join(' ');
  }

  /** Whether the version is smaller than this one. */
  isOlderThan(version: string): boolean {
    const own = (this.field('redis_version') ?? version).split('.').map(Number);
    const [major = 0, minor = 0] = version.split('.').map(Number);
    return own[0]! < major || (own[0] === major && (own[1] ?? 0) < minor);
  }

  /** What to do about the version; `undefined`: nothing. */
  get ageAdvice(): string | undefined {
    if (!this.isOlderThan(OLDEST)) return undefined;
    return `Redis ${this.field('redis_version')} is too old: locks are tested with ${OLDEST} and later.`;
  }

  /** What to do about eviction. Every key of a lock has an end, so that the `volatile-` policies evict it as well. */
  get evictionAdvice(): string | undefined {
    const policy = this.field('maxmemory_policy') ?? 'noeviction';
    if (policy === 'noeviction') return undefined;
    return `Redis has maxmemory-policy ${policy}: when its memory is full, it evicts locks that are held. Set it to noeviction.`;
  }
}
