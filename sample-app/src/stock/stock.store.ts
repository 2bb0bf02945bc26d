/** Where the units are written down. It guards nothing: between a read and a write another may have written. */
export abstract class StockStore {
  /** Units on the shelf; `null`: no such SKU. */
  abstract read(sku: string): Promise<number | null>;
  abstract write(sku: string, units: number): Promise<void>;

  /** Redis' SET NX PX, for the naive lock: whether the mark was not there. */
  abstract mark(name: string, expiry: number): Promise<boolean>;
  abstract unmark(name: string): Promise<void>;

  /** Notes that a stocktake ran at this tick. */
  abstract countStocktake(tick: number): Promise<void>;
  /** How many stocktakes ran, by tick. */
  abstract stocktakes(): Promise<Record<string, number>>;
}
