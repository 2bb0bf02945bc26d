import type { TelemetrySource } from '../core/model/telemetry.js';

const MOST_NAMES = 100;
const NONE = '(none)';
const OTHER = '(other)';

/** The names in one attribute. A registry keeps a time series per name for its whole life, so the names above a limit count as one. */
export class Names {
  private readonly known = new Set<string>();
  private hasWarned = false;

  /** @param what they are, for the warning. */
  constructor(private readonly what: string) {}

  of(source: TelemetrySource, name = NONE): string {
    if (this.known.has(name)) return name;
    if (this.known.size < MOST_NAMES) {
      this.known.add(name);
      return name;
    }
    if (!this.hasWarned) {
      this.hasWarned = true;
      source.warn(`More than ${MOST_NAMES} ${this.what} for metrics: the others are counted together, as "${OTHER}".`);
    }
    return OTHER;
  }
}
