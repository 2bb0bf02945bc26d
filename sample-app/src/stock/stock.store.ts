/** Where the units are written down. It guards nothing: between a read and a write another process may have written. */
export abstract class StockStore {
  /** Units on the shelf; `null`: no such SKU. */
  abstract read(sku: string): Promise<number | null>;
  abstract write(sku: string, units: number): Promise<void>;
}
