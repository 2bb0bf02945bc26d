import type { Change, Found } from '../../../../lib/stores/records/record.table.js';
import { MapTable } from '../../../support/map-table.js';

/** A change on its way: sent, then applied, then answered; or failed at any time, and then applied late or never. */
export interface Exchange {
  readonly change: Change;
  readonly table: StepTable;
  found: Found | undefined;
  /** Nobody waits for its answer any more. */
  isGhost: boolean;
  readonly resolve: (found: Found) => void;
  readonly reject: (error: unknown) => void;
}

/** How the changes reach the data. A table with a defect has another one. */
export type Apply = (change: Change, table: StepTable, apply: (change: Change) => Found) => Found;

/** A table of one process. Each of its exchanges goes on only when the scheduler says so. */
export class StepTable extends MapTable {
  readonly exchanges: Exchange[] = [];
  applyChange: Apply = (change, _table, apply) => apply(change);

  override exchange(changes: readonly Change[]): readonly Promise<Found>[] {
    return changes.map(
      (change) =>
        new Promise((resolve, reject) => {
          this.exchanges.push({ change, table: this, found: undefined, isGhost: false, resolve, reject });
        }),
    );
  }

  /** The request arrives. */
  arrive(exchange: Exchange): void {
    exchange.found = this.applyChange(exchange.change, this, (change) => this.apply(change));
    if (exchange.isGhost) this.forget(exchange);
  }

  answer(exchange: Exchange): void {
    this.forget(exchange);
    exchange.resolve(exchange.found!);
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
