import { currentLease, type Locks } from 'nestjs-distributed-lock';
import { eventually } from '../support/eventually.js';
import { Gate } from '../support/gate.js';
import { ask, candidate, type Diary, lose, openLocks, serverOf, type Overrides } from './standby-apps.js';

const listens = (diary: Diary, times = 1) =>
  eventually(() => diary.lines.filter((line) => line.startsWith('listen')).length === times && diary.server.listening);
const ENDED = ['destroy', 'shutdown'];
const STARTED = ['start', 'init', 'bootstrap', 'listen'];
const steps = (number: number, names: string[]) => names.map((name) => `${name} ${number}`);

describe('a standby', () => {
  let locks: Locks;
  beforeEach(() => (locks = openLocks()));

  /** A second one, in another process as far as the locks can tell; it is in line. */
  async function second(overrides: Overrides = {}) {
    const others = openLocks(locks.store);
    const waits = new Promise((resolve) => others.on('waiting', resolve));
    const next = candidate(others, overrides);
    await waits;
    return { ...next, others };
  }

  it('is preloaded while another leads: container built and prepared, nothing begun', async () => {
    const first = candidate(locks);
    await listens(first.diary);
    const { diary, standby } = await second();
    expect(diary.lines).toEqual(steps(1, ['create', 'prepare']));
    expect([first.standby.isLeader(), standby.isLeader(), diary.server.listening]).toEqual([true, false, false]);
    await expect(ask(first.diary.app)).resolves.toBe('fast');
  });

  it('starts once elected, with its app and its term, in whose call chain all that begins runs', async () => {
    let inside: unknown;
    const { diary } = candidate(locks, {
      async start(app, term) {
        diary.terms.push(term);
        inside = currentLease();
        await app.listen(0, '127.0.0.1');
        diary.lines.push('listen');
      },
    });
    await listens(diary);
    expect(diary.lines).toEqual([...steps(1, ['create', 'prepare', 'init', 'bootstrap']), 'listen']);
    expect([inside, diary.term.key, diary.term.remaining() > 0]).toEqual([diary.term, 'app-leader', true]);
  });

  it('stops by stop(): the app closes, its requests are answered, and only then the next one leads', async () => {
    const first = candidate(locks);
    await listens(first.diary);
    const next = await second();
    const slow = ask(first.diary.app, 'slow');
    await eventually(() => first.diary.requests.arrived === 1);

    const stopped = first.standby.stop();
    expect([first.diary.server.listening, first.standby.isLeader()]).toEqual([false, false]);
    await eventually(() => first.diary.lines.includes('destroy 1'));
    expect([first.diary.term.remaining() > 0, next.diary.terms.length]).toEqual([true, 0]);
    first.diary.requests.open();
    await expect(slow).resolves.toBe('slow');
    await stopped;
    expect(first.diary.lines).toEqual(steps(1, ['create', 'prepare', ...STARTED, ...ENDED]));
    await listens(next.diary);
    expect(next.diary.term.fencingToken!).toBeGreaterThan(first.diary.term.fencingToken!);
  });

  it('that was never elected stops at once, closes what it has built, and leaves no place behind', async () => {
    const first = candidate(locks);
    await listens(first.diary);
    const { standby, diary } = await second();
    await standby.stop();
    expect(diary.lines).toEqual(steps(1, ['create', 'prepare', ...ENDED]));
    await first.standby.stop();
    await expect(locks.tryAcquire('app-leader')).resolves.not.toBeNull();
  });

  it('whose term is lost closes, builds the next container, and only then stands again', async () => {
    const building = new Gate();
    const { diary, standby } = candidate(locks, {
      async prepare() {
        if (diary.apps.length === 2) await building.pass();
        diary.lines.push(`prepare ${diary.apps.length}`);
      },
    });
    await listens(diary);
    const [lost, app] = [diary.term, diary.app];
    await lose(locks, lost);
    expect(serverOf(app).listening).toBe(false);
    await eventually(() => building.arrived === 1);
    const stranger = await locks.tryAcquire('app-leader', { keyTimeout: 60_000 });
    expect(stranger).not.toBeNull();
    building.open();
    await eventually(() => diary.lines.includes('prepare 2'));
    await stranger!.release();
    await listens(diary, 2);
    const once = steps(1, ['create', 'prepare', ...STARTED, ...ENDED]);
    expect(diary.lines).toEqual([...once, ...steps(2, ['create', 'prepare', ...STARTED])]);
    expect([standby.isLeader(), diary.term.fencingToken! > lost.fencingToken!]).toEqual([true, true]);
  });

  it('stops listening on the first turn after its event loop stood still for longer than its lease', async () => {
    const { diary } = candidate(locks, { keyTimeout: 100 });
    await listens(diary);
    const { app } = diary;
    const end = performance.now() + 300;
    while (performance.now() < end); // nothing can renew
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    expect(serverOf(app).listening).toBe(false);
  });

  it('stops listening before the hooks of the shutdown, however long they take', async () => {
    const hook = new Gate();
    const { diary } = candidate(locks);
    diary.onDestroy = () => hook.pass();
    await listens(diary);
    const { app } = diary;
    await lose(locks, diary.term);
    await eventually(() => hook.arrived === 1);
    await expect(ask(app)).rejects.toThrow();
    hook.open();
    await listens(diary, 2);
  });

  it('ends by its signal, also by one that has aborted before', async () => {
    const caller = new AbortController();
    const { diary, standby } = candidate(locks, { signal: caller.signal });
    await listens(diary);
    caller.abort();
    await expect(standby.done).resolves.toBeUndefined();
    expect(diary.lines.slice(-2)).toEqual(steps(1, ENDED));
    const late = candidate(locks, { signal: caller.signal });
    await expect(late.standby.done).resolves.toBeUndefined();
    expect(late.diary.lines).toEqual([]);
  });

  it('that is stopped while its container is being built closes it, and does not stand', async () => {
    const building = new Gate();
    const { diary, standby } = candidate(locks, { prepare: () => building.pass() });
    await eventually(() => building.arrived === 1);
    const stopped = standby.stop();
    building.open();
    await stopped;
    expect([diary.lines, diary.terms]).toEqual([steps(1, ['create', ...ENDED]), []]);
  });

  it('that loses its term while it starts closes as soon as the start has ended', async () => {
    const starting = new Gate();
    const { diary } = candidate(locks, {
      async start(app, term) {
        diary.terms.push(term);
        if (diary.terms.length === 1) await starting.pass();
        await app.listen(0, '127.0.0.1');
        diary.lines.push(`listen ${diary.apps.length}`);
      },
    });
    await eventually(() => starting.arrived === 1);
    const { app } = diary;
    await lose(locks, diary.term);
    expect(diary.lines).not.toContain('destroy 1');
    starting.open();
    await listens(diary, 2);
    expect(diary.lines.filter((line) => line.endsWith('1'))).toEqual(
      steps(1, ['create', 'prepare', 'init', 'bootstrap', 'listen', ...ENDED]),
    );
    expect(serverOf(app).listening).toBe(false);
  });

  it('that loses its term while it starts does not go on to listen, however long the rest of the start takes', async () => {
    const [opening, rest] = [new Gate(), new Gate()];
    const { diary } = candidate(locks, {
      async start(app, term) {
        diary.terms.push(term);
        await opening.pass();
        await app.listen(0, '127.0.0.1');
        diary.lines.push('listens');
        await rest.pass();
      },
    });
    await eventually(() => opening.arrived === 1);
    const server = diary.server;
    await lose(locks, diary.term);
    opening.open();
    await eventually(() => rest.arrived === 1);
    await eventually(() => !server.listening).finally(() => rest.open());
    await eventually(() => diary.lines.includes('shutdown 1'));
  });
});
