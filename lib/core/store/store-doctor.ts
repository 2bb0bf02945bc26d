import type { DoctorCheck, Purpose } from '../model/doctor-report.js';

/** The examination of a store's server: how it keeps locks. */
export interface StoreDoctor {
  /**
   * The checks of this store, also made at startup. It never rejects, and changes nothing. `version` says what the server is. A `role` that is `'bad'`
   * gives no locks.
   *
   * @param namespace put before all keys.
   */
  checks(namespace: string): Promise<readonly DoctorCheck[]>;
  /** The users that the store needs, as text to copy. @param namespace put before all keys. */
  rights?(namespace: string): Promise<string>;
}

/** The subject of a check. */
export interface Question extends Pick<DoctorCheck, 'id' | 'name' | 'touches'> {
  /** Why the locks may be unfit if there is no answer. */
  readonly unseen?: { readonly purpose: Purpose; readonly because: string };
}

/** The result of a check. No state: `'ok'`. */
export type Finding = Pick<DoctorCheck, 'seen' | 'limits'> & Partial<Pick<DoctorCheck, 'state' | 'advice'>>;

/** Locks work, with a limit. @param because why they are not fit for correctness. */
export function warning(seen: string, advice: string, because?: string): Finding {
  return { state: 'warn', seen, advice, ...(because !== undefined && { limits: { purpose: 'correctness', because } }) };
}

/** Locks do not work, or can be lost at any time. @param because why they are not fit for the purpose. */
export function bad(seen: string, advice: string, because: string, purpose: Purpose = 'efficiency'): Finding {
  return { state: 'bad', seen, advice, limits: { purpose, because } };
}

/** Never rejects: what cannot be asked is `'unknown'`. */
export async function checkOf({ unseen, ...question }: Question, look: () => Finding | Promise<Finding>): Promise<DoctorCheck> {
  const found = await Promise.resolve()
    .then(look)
    .catch((error: unknown): Finding => {
      const seen = `not known: ${String((error as Error | undefined)?.message ?? error).split('\n')[0]}`;
      return { state: 'unknown', seen, advice: 'Look at it yourself, or ask with a user who may.' };
    });
  const { state = 'ok', seen, advice = '' } = found;
  const limits = found.limits ?? (state === 'unknown' ? unseen : undefined);
  return { ...question, state, seen, advice, ...(limits && { limits }) };
}
