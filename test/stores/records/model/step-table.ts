import type { CasChange, CasFound } from '../../../../lib/stores/records/observed/cas.table.js';
import type { Change, Found } from '../../../../lib/stores/records/record.table.js';
import { CasMapTable, type CasMapData } from '../../../support/cas-map-table.js';
import { MapTable, type MapData } from '../../../support/map-table.js';

/** A change on its way: sent, then applied, then answered; or failed at any time, and then applied late or never. */
export interface Exchange {
  readonly change: unknown;
  found: unknown;
  /** That it reserved. */
  tokens: readonly [first: number, last: number];
  /** Nobody waits for its answer any more. */
  isGhost: boolean;
  readonly resolve: (found: never) => void;
  readonly reject: (error: unknown) => void;
}

/** What a change finds, and the tokens that it reserves. */
type Applied<F> = readonly [found: F, tokens: Exchange['tokens']];

/** The exchanges of one process. Each goes on only when the scheduler says so. */
export class Steps<C = never, F = unknown> {
  readonly exchanges: Exchange[] = [];

  constructor(private readonly apply: (change: C) => Applied<F>) {}

  send(changes: readonly C[]): readonly Promise<F>[] {
    return changes.map(
      (change) =>
        new Promise<F>((resolve, reject) => {
          this.exchanges.push({ change, found: undefined, tokens: [0, 0], isGhost: false, resolve, reject });
        }),
    );
  }

  /** The request arrives. */
  arrive(exchange: Exchange): void {
    [exchange.found, exchange.tokens] = this.apply(exchange.change as C);
    if (exchange.isGhost) this.forget(exchange);
  }

  answer(exchange: Exchange): void {
    this.forget(exchange);
    exchange.resolve(exchange.found as never);
  }

  /** The reply is lost, or the connection while the request is under way: that may arrive yet. */
  fail(exchange: Exchange, error: unknown): void {
    this.abandon(exchange);
    exchange.reject(error);
  }

  abandon(exchange: Exchange): void {
    if (exchange.found) this.forget(exchange);
    exchange.isGhost = true;
  }

  private forget(exchange: Exchange): void {
    this.exchanges.splice(this.exchanges.indexOf(exchange), 1);
  }
}

/** How the changes reach the data. A table with a defect has another one. */
export type Apply = (change: Change, data: MapData, apply: (change: Change) => Found) => Found;

export class StepTable extends MapTable {
  readonly steps = new Steps((change: Change): Applied<Found> => {
    const found = this.applyChange(change, this.data, (each) => this.apply(each));
    return [found, found.written && change.tokens > 0 ? [found.fence - change.tokens + 1, found.fence] : [0, 0]];
  });

  constructor(
    data: MapData,
    private readonly applyChange: Apply = (change, _data, apply) => apply(change),
  ) {
    super(data, {}, 1e9);
  }

  override exchange(changes: readonly Change[]): readonly Promise<Found>[] {
    return this.steps.send(changes);
  }
}

let tables = 0;

/** The same for a process that observes the time. */
export class StepCasTable extends CasMapTable {
  readonly steps = new Steps((change: CasChange): Applied<CasFound> => {
    const fence = (): number => (JSON.parse(this.data.rows.get(change.key)?.text ?? '{"fence":0}') as { fence: number }).fence;
    const before = fence();
    return [this.apply(change), [before + 1, fence()]];
  });

  constructor(data: CasMapData) {
    super(data, { storeId: `steps ${++tables}`, isCounted: false, requestTimeout: 1e9 });
  }

  override exchange(changes: readonly CasChange[]): readonly Promise<CasFound>[] {
    return this.steps.send(changes);
  }
}
