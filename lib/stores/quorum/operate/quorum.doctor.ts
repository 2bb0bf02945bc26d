import type { DoctorCheck } from '../../../core/model/doctor-report.js';
import { bad, checkOf, type Finding } from '../../../core/store/store-doctor.js';
import { isSettledWithin } from '../../../core/util/clock.js';
import type { Member } from '../quorum.member.js';
import { majorityOf } from '../quorum.votes.js';

/** Milliseconds for the checks of a member. */
const LONGEST_CHECKS = 5_000;

/** The checks of each member. A limit of one member is one of the quorum only where the others do not make up for it. */
export async function quorumChecks(members: readonly Member[], quarantine: number, namespace: string): Promise<DoctorCheck[]> {
  const lists = await Promise.all(members.map((member) => checksOf(member, namespace)));
  const isWeak = (checks: readonly DoctorCheck[]): boolean => checks.some(({ limits }) => limits?.purpose === 'efficiency');
  const isTooWeak = lists.filter(isWeak).length > members.length - majorityOf(members.length);
  const names = lists.map(
    (checks, index) => checks.find(({ id, state }) => id === 'version' && state === 'ok')?.seen ?? members[index]!.store.name,
  );
  const quarantined = { id: 'quarantine', name: 'members that were started again', touches: ['G2'] };
  const own = lists.map((checks, index) =>
    checks.map(({ limits, ...check }): DoctorCheck => {
      const counts = limits?.purpose === 'efficiency' && isTooWeak;
      return { ...check, name: `member ${index + 1}: ${check.name}`, ...(counts && { limits }) };
    }),
  );
  return [
    await checkOf({ id: 'version', name: 'members', touches: [] }, () => ({ seen: `a quorum of ${members.length}: ${names.join(', ')}` })),
    await checkOf(quarantined, () => quarantineOf(members, lists, quarantine)),
    ...own.flat(),
  ];
}

function quarantineOf(members: readonly Member[], lists: readonly (readonly DoctorCheck[])[], quarantine: number): Finding {
  const forgetful = members.filter(
    (member, index) => !member.mayForget && lists[index]?.some(({ limits }) => limits?.purpose === 'correctness'),
  );
  if (forgetful.length === 0) return { seen: quarantine > 0 ? `they do not vote for ${quarantine / 1000} s` : 'they keep each write' };
  const seen = `they vote at once, and ${forgetful.map(({ title }) => title).join(', ')} may have forgotten locks`;
  const advice = 'Set a quarantine, or let each member keep every write and every grant through a crash and a failover.';
  return bad(seen, advice, 'a member can forget locks, and no quarantine covers it', 'correctness');
}

async function checksOf({ store, title }: Member, namespace: string): Promise<readonly DoctorCheck[]> {
  const asked = store.doctor?.checks(namespace);
  if (asked && (await isSettledWithin(LONGEST_CHECKS, asked))) return asked;
  const because = `${title} does not say how it keeps what it has granted`;
  const unseen = { purpose: 'correctness', because } as const;
  const seen = asked ? 'no answer' : 'this store has no checks of its own';
  const advice = 'Read what its database promises for a commit that was answered.';
  return [
    await checkOf({ id: 'durability', name: 'what a crash can lose', touches: ['G2'], unseen }, () => ({ state: 'unknown', seen, advice })),
  ];
}
