/** What a message to an inbox says: an owner may have been offered its key, or should ask after so many milliseconds. */
export interface Offer {
  readonly owner: string;
  readonly askIn?: number;
}

/** Characters of a message: more than a store sends. What is longer is left alone unread. */
export const LONGEST_MESSAGE = 8_192;

/** One offer by its fields, all of which must be known; `undefined`: it is none. Anybody who may send to an inbox can send any text there. */
export function offerOf(owner: string | undefined, askIn: string | undefined, others: readonly string[]): Offer | undefined {
  if (!owner || others.length > 0) return undefined;
  if (askIn === undefined) return { owner };
  return /^\d{1,9}(\.\d{1,9})?$/.test(askIn) ? { owner, askIn: Number(askIn) } : undefined;
}
