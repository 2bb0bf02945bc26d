import type { DoctorCheck, DoctorVerdict, Purpose } from '../../core/model/doctor-report.js';

/** What the checks say together, in the words of docs/guarantees.md. */
export function verdictOf(checks: readonly DoctorCheck[]): DoctorVerdict {
  const of = (purpose: Purpose, isKnown: boolean): DoctorCheck[] =>
    checks.filter(({ limits, state }) => limits?.purpose === purpose && (state !== 'unknown') === isKnown);
  const [never, perhaps] = [of('efficiency', true), of('efficiency', false)];
  if (never.length > 0) {
    const text = `Efficiency: no, because ${reasonsOf(never)}. Correctness: no.`;
    return { efficiency: 'no', correctness: 'no', text };
  }
  const weak = [...of('correctness', true), ...of('correctness', false)];
  const efficiency = perhaps.length > 0 ? 'unknown' : 'yes';
  const first = perhaps.length > 0 ? `Efficiency: unknown, because ${reasonsOf(perhaps)}.` : 'Efficiency: yes.';
  if (weak.length > 0) {
    const text = `${first} Correctness: only with the fencing token checked at the resource, because ${reasonsOf(weak)}.`;
    return { efficiency, correctness: efficiency === 'yes' ? 'token' : 'unknown', text };
  }
  if (efficiency === 'unknown') return { efficiency, correctness: 'unknown', text: `${first} Correctness: unknown, for the same reason.` };
  return { efficiency, correctness: 'yes', text: `${first} Correctness: yes, and check the fencing token if you can.` };
}

function reasonsOf(checks: readonly DoctorCheck[]): string {
  const reasons = checks.map(({ id, limits }) => `${limits!.because} (${id})`);
  return [reasons.slice(0, -1).join(', '), ...reasons.slice(-1)].filter((part) => part !== '').join(' and ');
}
