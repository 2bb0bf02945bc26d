import { Counter, Histogram } from 'prom-client';
import type { Attributes } from '../observe/series.js';

// prom-client looks a series up by a text that it makes of all labels, for each value: 1 µs. Here the attributes of a series are one object.

type Values = Awaited<ReturnType<Histogram['get']>>;

interface Cell {
  /** How many values each bucket has by itself, the last one without an upper bound. */
  readonly counts: number[];
  count: number;
  sum: number;
}

/** A histogram that is exported as any other of prom-client. */
export class SeriesHistogram extends Histogram {
  declare readonly name: string;
  declare readonly help: string;
  declare readonly type: Values['type'];
  declare readonly aggregator: Values['aggregator'];
  declare readonly upperBounds: readonly number[];
  private readonly cells = new Map<Attributes, Cell>();

  record(value: number, attributes: Attributes): void {
    let cell = this.cells.get(attributes);
    if (!cell) {
      cell = { counts: [...this.upperBounds, Infinity].map(() => 0), count: 0, sum: 0 };
      this.cells.set(attributes, cell);
    }
    const { upperBounds } = this;
    let bucket = 0;
    while (bucket < upperBounds.length && value > upperBounds[bucket]!) bucket++;
    cell.counts[bucket]!++;
    cell.count++;
    cell.sum += value;
  }

  override get(): Promise<Values> {
    const { name, help, type, aggregator, upperBounds } = this;
    const values = [...this.cells].flatMap(([attributes, { counts, count, sum }]) => {
      let total = 0;
      const buckets = upperBounds.map((le, index) => ({
        labels: { ...attributes, le },
        value: (total += counts[index]!),
        metricName: `${name}_bucket`,
      }));
      return [
        ...buckets,
        { labels: { ...attributes, le: '+Inf' }, value: count, metricName: `${name}_bucket` },
        { labels: { ...attributes }, value: sum, metricName: `${name}_sum` },
        { labels: { ...attributes }, value: count, metricName: `${name}_count` },
      ];
    });
    return Promise.resolve({ name, help, type, aggregator, values } as unknown as Values);
  }

  /** What a registry asks for instead, where it knows it. */
  getForPromString(): Promise<Values> {
    return this.get();
  }

  override reset(): void {
    super.reset();
    // The constructor of prom-client calls it, too.
    (this.cells as typeof this.cells | undefined)?.clear();
  }
}

/** A counter that is exported as any other of prom-client. */
export class SeriesCounter extends Counter {
  private readonly cells = new Map<Attributes, { value: number }>();

  record(value: number, attributes: Attributes): void {
    const cell = this.cells.get(attributes);
    if (cell) cell.value += value;
    else this.cells.set(attributes, { value });
  }

  override async get(): ReturnType<Counter['get']> {
    const values = [...this.cells].map(([attributes, { value }]) => ({ labels: { ...attributes }, value }));
    return { ...(await super.get()), values };
  }

  override reset(): void {
    super.reset();
    (this.cells as typeof this.cells | undefined)?.clear();
  }
}
