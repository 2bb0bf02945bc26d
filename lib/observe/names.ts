import type { TelemetrySource } from '../core/model/telemetry.js';

/** Names of one attribute, unless an app wants fewer. */
export const MOST_NAMES = 100;
const NONE = '(none)';
const OTHER = '(other)';

/** The names in one attribute. A registry keeps a time series per name for its whole life, so the names above a limit count as one. */
export class Names {
  private readonly known = new Set<string>();
  private hasWarned = false;

  /** @param what they are, for the warning. */
  constructor(
    private readonly what: string,
    private readonly most = MOST_NAMES,
  ) {}

  of(source: TelemetrySource, name = NONE): string {
    if (this.known.has(name)) return name;
    if (this.known.size < this.most) {
      this.known.add(name);
      return name;
    }
    if (!this.hasWarned) {
      this.hasWarned = true;
      source.warn(`More than ${this.most} ${this.what} for metrics: the others are counted together, as "${OTHER}".`);
    }
    return OTHER;
  }
}
