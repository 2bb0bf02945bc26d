/** Attributes of one time series. Those of the same series are the same object. */
export type Attributes = Readonly<Record<string, string>>;

const MOST_NAMES = 100;
const NONE = '(none)';
const OTHER = '(other)';

/** Metrics keep a time series for each name in memory, without an end. So the names that come late count as one. */
export class Names {
  private readonly known = new Set<string>();
  private hasWarned = false;

  /** @param what they are, for the warning. */
  constructor(private readonly what: string) {}

  of(name: string | undefined, warn: (message: string) => void): string {
    const own = name ?? NONE;
    if (this.known.has(own)) return own;
    if (this.known.size < MOST_NAMES) {
      this.known.add(own);
      return own;
    }
    if (!this.hasWarned) {
      this.hasWarned = true;
      warn(`More than ${MOST_NAMES} ${this.what} for metrics: the others are counted together, as "${OTHER}".`);
    }
    return OTHER;
  }
}

/** Makes the attributes of each series once: calls look them up, and make no objects. */
export class Series {
  private readonly made = new Map<string, Series>();
  private attributes: Attributes | undefined;

  /** The series with one more value, in the order of the names in {@link as}. */
  with(value: string): Series {
    let next = this.made.get(value);
    if (!next) this.made.set(value, (next = new Series()));
    return next;
  }

  as(make: () => Attributes): Attributes {
    return (this.attributes ??= make());
  }
}
