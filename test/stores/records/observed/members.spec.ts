import { passTime } from '../../../support/virtual-time.js';
import { Members } from '../../../../lib/stores/records/observed/members.js';
import { newGate } from './setting.js';

const TIMEOUT = 1000;
const REFUSED = 'are not of one cluster';

/** Members that answer with the cluster that is written here; nothing: they do not answer. */
function membersOf(clusters: Record<string, string | undefined>) {
  const asked: string[] = [];
  const members = new Members('test', Object.keys(clusters), TIMEOUT, (member) => {
    asked.push(member);
    return clusters[member] === undefined ? Promise.reject(new Error('down')) : Promise.resolve(clusters[member]);
  });
  return { members, asked, clusters };
}

it('are asked once, all at a time', async () => {
  const { members, asked } = membersOf({ a: '1', b: '1', c: '1' });
  await Promise.all([members.settled(), members.settled()]);
  members.heard('b', '1');
  await members.settled();
  expect(asked).toEqual(['a', 'b', 'c']);
});

it('of two clusters are refused, also while one of the two does not answer any more, until they are of one', async () => {
  const { members, clusters } = membersOf({ a: '1', b: '2', c: undefined });
  await expect(members.settled()).rejects.toThrow(REFUSED);
  clusters.b = undefined;
  await passTime(1001);
  await expect(members.settled()).rejects.toThrow(REFUSED);
  clusters.b = '1';
  await passTime(1001);
  await members.settled();
});

it('of two clusters are not asked by each call: all calls of a second share one refusal', async () => {
  const { members, asked } = membersOf({ a: '1', b: '2' });
  const call = async (): Promise<void> => {
    await expect(members.settled()).rejects.toThrow(REFUSED);
    members.heard('a', '1');
  };
  for (let calls = 0; calls < 100; calls++) await call();
  expect(asked).toEqual(['a', 'b']);
  await passTime(1001);
  for (let calls = 0; calls < 100; calls++) await call();
  expect(asked).toEqual(['a', 'b', 'a', 'b']);
});

type Answers = Record<string, string>;

// What is silent may have granted the key before, or to others. The ids of before a restore are void: a member has changed them for another one.
it.each<[what: string, isRefused: boolean, rounds: Answers[]]>([
  [
    'a cluster that was restored, with a member that is dead since then',
    false,
    [
      { a: '1', b: '1', c: '1' },
      { a: '2', b: '2' },
    ],
  ],
  [
    'the same, while a member of before lives on',
    true,
    [
      { a: '1', b: '1', c: '1' },
      { a: '2', b: '2', c: '1' },
    ],
  ],
  [
    'the same, when that one is dead, too',
    false,
    [
      { a: '1', b: '1', c: '1' },
      { a: '2', b: '2', c: '1' },
      { a: '2', b: '2' },
    ],
  ],
  [
    'the same, when that one answers again',
    true,
    [
      { a: '1', b: '1', c: '1' },
      { a: '2', b: '2', c: '1' },
      { a: '2', b: '2' },
      { a: '2', b: '2', c: '1' },
    ],
  ],
  ['a cluster that was restored twice', false, [{ a: '1', b: '1' }, { a: '2', b: '1' }, { a: '3' }]],
  ['a cluster that was restored, and the one of before again', false, [{ a: '1', b: '1' }, { a: '2', b: '2' }, { a: '1' }]],
  ['two clusters, of which one is silent', true, [{ a: '1', b: '2' }, { a: '1' }]],
  ['two clusters, of which one is silent, and the other one was restored', true, [{ a: '1', b: '2' }, { a: '3' }]],
  ['two clusters, of which one takes the place of the other', true, [{ a: '1' }, { b: '2' }]],
  ['two clusters, each silent for a while', true, [{ a: '1' }, { b: '2' }, { a: '1' }, { b: '2' }]],
])('%s: refused is %s', async (_what, isRefused, rounds) => {
  const silent = { a: undefined, b: undefined, c: undefined };
  const { members, clusters } = membersOf({ ...silent, ...rounds[0] });
  let outcome = members.settled();
  for (const answers of rounds.slice(1)) {
    await outcome.catch(() => undefined);
    await passTime(1001);
    Object.assign(clusters, silent, answers);
    // The replies to some requests.
    for (const index of [0, -1]) members.heard(...Object.entries(answers).at(index)!);
    outcome = members.settled();
  }
  if (isRefused) await expect(outcome).rejects.toThrow(REFUSED);
  else await outcome;
});

it('that are down are compared when they answer first, although the others are down then', async () => {
  const { members, clusters } = membersOf({ a: '1', b: undefined });
  await members.settled();
  clusters.a = undefined;
  clusters.b = '2';
  members.heard('b', '2');
  await expect(members.settled()).rejects.toThrow(REFUSED);
});

it('of a cluster that was restored have another id, all of them: some may still be down', async () => {
  const { members, clusters } = membersOf({ a: '1', b: '1', c: '1' });
  await members.settled();
  Object.assign(clusters, { a: '2', b: '2', c: undefined });
  members.heard('a', '2');
  await members.settled();
  clusters.c = '2';
  members.heard('c', '2');
  await members.settled();
});

it('that are restored are refused as long as the connection in use leads to the cluster of before', async () => {
  const { members, clusters } = membersOf({ a: '1', b: '1' });
  members.heard('the one in use', '1');
  await members.settled();
  Object.assign(clusters, { a: '2', b: '2' });
  members.heard('a', '2');
  await expect(members.settled()).rejects.toThrow(REFUSED);
  members.heard('the one in use', undefined);
  await members.settled();
});

it('of which one alone has another id are of two clusters', async () => {
  const { members, clusters } = membersOf({ a: '1', b: '1' });
  await members.settled();
  clusters.a = '2';
  members.heard('a', '2');
  await expect(members.settled()).rejects.toThrow(REFUSED);
});

it('that are silent do not hold up the first request for more than half of the time that it has', async () => {
  const gate = newGate();
  const members = new Members('test', ['a', 'b'], TIMEOUT, (member) =>
    member === 'a' ? Promise.resolve('1') : gate.opening.then(() => '2'),
  );
  let isSettled = false;
  void members.settled().then(() => (isSettled = true));
  await passTime(TIMEOUT / 2 + 1);
  expect(isSettled).toBe(true);
  gate.open();
  await passTime(1);
  await expect(members.settled()).rejects.toThrow(REFUSED);
});

it('that have not answered are asked again after a while', async () => {
  const { members, asked, clusters } = membersOf({ a: '1', b: undefined });
  members.askRest();
  await members.settled();
  members.askRest();
  await passTime(10_001);
  clusters.b = '2';
  members.askRest();
  expect(asked).toEqual(['a', 'b', 'b']);
  await passTime(1);
  await expect(members.settled()).rejects.toThrow(REFUSED);
});
