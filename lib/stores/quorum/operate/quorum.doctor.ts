import type { DoctorCheck } from '../../../core/model/doctor-report.js';
import { bad, checksOf, unknownDurability } from '../../../core/store/store-doctor.js';
import { isSettledWithin } from '../../../core/util/clock.js';
import type { Member } from '../quorum.member.js';
import { majorityOf } from '../quorum.votes.js';

/** Milliseconds for the checks of a member. */
const LONGEST_CHECKS = 5_000;

/** The checks of each member. A limit of one member is one of the quorum only where the others do not make up for it. */
export async function quorumChecks(members: readonly Member[], quarantine: number, namespace: string): Promise<DoctorCheck[]> {
  const lists = await Promise.all(members.map((member) => memberChecks(member, namespace)));
  const isLimited = (index: number, purpose: string): boolean => lists[index]!.some(({ limits }) => limits?.purpose === purpose);
  const unfit = members.filter((_, index) => isLimited(index, 'efficiency'));
  const isUnfit = unfit.length > members.length - majorityOf(members.length);
  const own = await checksOf({
    version() {
      const names = lists.map(
        (list, index) => list.find(({ id, state }) => id === 'version' && state === 'ok')?.seen ?? members[index]!.store.name,
      );
      return { seen: `a quorum of ${members.length}: ${names.join(', ')}` };
    },
    place() {
      const places = lists.map((list) => list.find(({ id, state }) => id === 'place' && state === 'ok')?.seen ?? 'at an unknown address');
      return { seen: `with ${places.map((place, index) => `member ${index + 1} ${place}`).join('; ')}` };
    },
    quarantine() {
      const forgetful = members.filter((member, index) => !member.mayForget && isLimited(index, 'correctness'));
      if (forgetful.length === 0) return { seen: quarantine > 0 ? `they do not vote for ${quarantine / 1000} s` : 'they keep each write' };
      const seen = `they vote at once, and ${forgetful.map(({ title }) => title).join(', ')} may have forgotten locks`;
      const advice = 'Set a quarantine, or let each member keep every write and every grant through a crash and a failover.';
      return bad(seen, advice, 'a member can forget locks, and no quarantine covers it', 'correctness');
    },
  });
  const ofMembers = lists.flatMap((list, index) =>
    list.map(({ limits, ...check }): DoctorCheck => {
      const counts = limits?.purpose === 'efficiency' && isUnfit;
      return { ...check, name: `member ${index + 1}: ${check.name}`, ...(counts && { limits }) };
    }),
  );
  return [...own, ...ofMembers];
}

async function memberChecks({ store }: Member, namespace: string): Promise<readonly DoctorCheck[]> {
  const checks = store.doctor?.checks(namespace);
  if (!checks) return unknownDurability();
  return (await isSettledWithin(LONGEST_CHECKS, checks)) ? checks : unknownDurability('no answer');
}
