import { spawnSync } from 'node:child_process';

const DEFECT = 'what was seen last answers, without a look';

function simulate(...flags: string[]): { status: number | null; output: string } {
  const args = ['--import', 'tsx', 'test/simulation/main.ts', '--seed', '1', '--length', '1000', ...flags];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 2 ** 28 });
  return { status, output: stdout + stderr };
}

it.each(['records', 'observed', 'quorum'])('over %s, one seed gives one history', (store) => {
  const [one, other] = [0, 1].map(() => simulate('--store', store, '--runs', '1', '--trace'));
  expect(one!.output).toContain(' granted ');
  expect(one!.output).toContain(': ok');
  expect(other).toEqual(one);
});

it('a defect of the library is found, with a seed that finds it again', () => {
  const found = simulate('--store', 'records', '--defect', DEFECT);
  expect(found.status).toBe(1);
  expect(found.output).toMatch(/FAILED \w+, G/);
  const [, seed] = /repeat: .*--seed (\d+)/.exec(found.output)!;
  expect(simulate('--store', 'records', '--seed', seed!, '--runs', '1', '--defect', DEFECT).output).toBe(found.output);
});
