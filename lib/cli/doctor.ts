import type { CheckState, DoctorCheck } from '../core/model/doctor-report.js';
import type { Command } from './command.js';
import { EXIT, usage } from './failure.js';
import type { Output } from './output.js';

const STATES: readonly CheckState[] = ['ok', 'warn', 'bad', 'unknown'];
const INDENT = ' '.repeat(27);

export const doctor: Command = {
  words: [],
  summary: 'examines the store for what loses locks, and tries one (exit code 6)',
  flags: {
    probe: { type: 'string', help: 'how long to wait for a wake-up (3s)' },
    'no-probe': { type: 'boolean', help: 'writes nothing to the store: no lock is tried' },
    strict: { type: 'boolean', help: 'exit code 6 also for a warning' },
  },
  async run({ flags, out, locks }) {
    const within = flags.duration('probe');
    if (within === 0) throw usage('--probe is a time from 1ms on, and --no-probe means none.');
    if (within !== undefined && flags.has('no-probe')) throw usage('Give --probe or --no-probe, not both.');
    const report = await (await locks()).doctor({ probe: flags.has('no-probe') ? false : within });
    out.json('doctor', report);
    for (const check of report.checks) print(out, check);
    out.line();
    out.line(`${STATES.map((state) => `${report.checks.filter((check) => check.state === state).length} ${state}`).join(', ')}`);
    out.line(report.verdict.text);
    const isFound = report.checks.some(({ state }) => state === 'bad' || (state === 'warn' && flags.has('strict')));
    return isFound ? EXIT.findings : EXIT.ok;
  },
};

function print(out: Output, { id, state, seen, touches, advice }: DoctorCheck): void {
  const word = state.padEnd(7);
  const isBad = state === 'bad';
  out.line(`${isBad ? '' : word}  ${id.padEnd(16)}  ${seen}`, isBad ? word : '');
  if (advice !== '') out.line(`${INDENT}${touches.length === 0 ? '' : `${touchedBy(touches)}: `}${advice}`);
}

function touchedBy(touches: readonly string[]): string {
  return touches.length > 3 ? 'all guarantees' : touches.join(', ');
}
