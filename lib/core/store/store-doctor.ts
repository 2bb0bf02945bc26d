import type { DoctorCheck, Purpose } from '../model/doctor-report.js';

/** What a store knows of how its server keeps locks. */
export interface StoreDoctor {
  /** The checks of this store. It never rejects, and changes nothing. @param namespace put before all keys. */
  checks(namespace: string): Promise<readonly DoctorCheck[]>;
  /** The time of the store's clock, in milliseconds since 1970. Without this method, the store has the clock of this machine. */
  time?(): Promise<number>;
  /** The users that the store needs, as text to copy. @param namespace put before all keys. */
  rights?(namespace: string): string;
}

/** What a check is about. */
export interface Question extends Pick<DoctorCheck, 'id' | 'name' | 'touches'> {
  /** Why the locks may be unfit if there is no answer. */
  readonly unseen?: { readonly purpose: Purpose; readonly because: string };
}

/** What a check has found. No state: `'ok'`. */
export type Finding = Pick<DoctorCheck, 'seen' | 'limits'> & Partial<Pick<DoctorCheck, 'state' | 'advice'>>;

/** Never rejects: what cannot be asked is `'unknown'`. */
export async function checkOf({ unseen, ...question }: Question, look: () => Finding | Promise<Finding>): Promise<DoctorCheck> {
  try {
    const { state = 'ok', seen, advice = '', limits } = await look();
    const unknown = state === 'unknown' ? unseen : undefined;
    const limit = limits ?? unknown;
    return { ...question, state, seen, advice, ...(limit && { limits: limit }) };
  } catch (error) {
    const seen = `not known: ${String((error as Error | undefined)?.message ?? error).split('\n')[0]}`;
    return {
      ...question,
      state: 'unknown',
      seen,
      advice: 'Look at it yourself, or ask with a user who may.',
      ...(unseen && { limits: unseen }),
    };
  }
}
