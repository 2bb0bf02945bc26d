import { alignedLines } from '../table.mjs';

/** Milliseconds on top of the lease of a leader that died; all there is for one that steps down. */
const MARGIN = 1_000;

/** Judges what the demo has shown: lines to print, and the problems. */
export function judge({ changes, entries, answers, surprises }, keyTimeout) {
  const frozen = changes.filter(({ how }) => how === 'SIGSTOP');
  const fromTheLedger = ofTheLedger(entries, new Set(frozen.map(({ pid }) => pid)));
  const problems = [...surprises, ...fromTheLedger, ...ofTheAnswers(answers)];
  const rows = [['change', 'from', 'to', 'first answer', 'first write', 'at most']];
  for (const { how, from, to, status, answer, write } of changes) {
    const limit = how === 'SIGTERM' ? MARGIN : keyTimeout + MARGIN;
    rows.push([how, from, to, ...[answer, write, limit].map((ms) => `${Math.round(ms)} ms`)]);
    if (answer > limit || write > limit) problems.push(`${how}: the next leader took longer than ${limit} ms.`);
    if (how === 'SIGTERM' && status !== 0) problems.push(`SIGTERM: the leader ended with status ${status}, not 0.`);
  }
  const refused = entries.filter((entry) => !entry.accepted).length;
  const terms = new Set(entries.map(({ token }) => token)).size;
  if (terms !== changes.length + 1)
    problems.push(`There were ${terms} terms in the ledger, not the ${changes.length + 1} of these changes.`);
  const lines = [
    ...alignedLines(rows, 3),
    '',
    `The ledger: ${entries.length - refused} writes accepted, of ${terms} terms; ${refused} refused.`,
  ];
  for (const { pid, from, to } of frozen) {
    const late = entries.filter((entry) => entry.pid === pid && !entry.accepted).length;
    if (late > 0)
      lines.push(`${from} was frozen for longer than its lease, and wrote when ${to} led: the ledger has refused that, by its token.`);
    else problems.push(`The ledger has refused no write of ${from}, though it was frozen in the middle of its job.`);
  }
  if (fromTheLedger.length === 0) lines.push('By the ledger, no two leaders have written at any instant.');
  return { lines, problems };
}

/**
 * Judges the log of the fenced resource, in the order in which it was written to: what leaders say of themselves counts for nothing.
 *
 * @param frozen pids of those that were stopped for longer than their lease: their writes come late, and must be refused
 */
export function ofTheLedger(entries, frozen = new Set()) {
  const problems = [];
  const writers = new Map();
  let newest = 0;
  let last = 0;
  let overlaps = 0;
  for (const { token, pid, accepted, at } of entries) {
    if (at < last) problems.push('The clock of the server went back: the ledger proves nothing.');
    last = at;
    if (writers.has(token) && writers.get(token) !== pid)
      problems.push(`Two processes, ${writers.get(token)} and ${pid}, wrote with one token, ${token}.`);
    writers.set(token, pid);
    if (token < newest) {
      if (!frozen.has(pid)) overlaps++;
      if (accepted) problems.push(`The ledger accepted token ${token} after ${newest}: its fence is broken.`);
    } else if (!accepted) problems.push(`The ledger refused token ${token}, though it had seen none that is newer.`);
    newest = Math.max(newest, token);
  }
  // Nothing stops the others for long, so they have no excuse.
  if (overlaps > 0) {
    problems.push(
      `${overlaps} writes came from a leader after a newer one had written: two were at work at once. (The fence has refused them. A machine that stands ` +
        'still for longer than the lease does that too.)',
    );
  }
  return [...new Set(problems)];
}

/** The balancer's view: once a newer leader has answered, an older one gives no answer to what is asked later. */
function ofTheAnswers(answers) {
  const asked = [...answers].sort((a, b) => a.sent - b.sent);
  const given = [...answers].sort((a, b) => a.answered - b.answered);
  let newest = { token: 0 };
  for (const { token, sent, pid } of asked) {
    for (; given[0].answered < sent; given.shift()) if (given[0].token > newest.token) newest = given[0];
    if (newest.token > token)
      return [`Process ${pid} answered a request that was sent after ${newest.pid}, a newer leader, had answered one.`];
  }
  return [];
}
