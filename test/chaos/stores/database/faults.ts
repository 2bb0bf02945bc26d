import { stageOf, type Fault, type Strike } from '../../faults/fault.js';
import type { Scene } from '../../run/scene.js';
import { keyAt } from '../../worker/keys.js';
import { DatabaseStage, type Operator } from './stage.js';

/** ms after its end when a row may be deleted here; the store itself waits for an hour. */
const ENDED_FOR = 5_000;

/** Faults of a database server. Each concerns all workers. */
export function databaseFaults({ killListeners }: Operator): Fault[] {
  const ofListeners = killListeners ? [wide('server', 'listeners killed', [0, 0], killListeners)] : [];
  return [...FAULTS, ...ofListeners];
}

const FAULTS: readonly Fault[] = [
  wide('server', 'server stopped', [50, 2_500], async ({ server }, pause) => {
    server.pause();
    await pause();
    server.resume();
  }),
  wide('server', 'clients killed', [0, 0], ({ operator }) => operator.killClients()),
  wide('server', 'rows held by a transaction', [50, 2_000], ({ operator }, pause) => operator.holdRows(pause)),
  wide('server', 'table locked', [50, 2_000], ({ operator }, pause) => operator.holdTable(pause)),
  wide('server', 'statements wait', [2_000, 4_000], ({ operator }, pause) => operator.holdTable(pause)),
  wide('server', 'old rows deleted', [0, 0], ({ operator }) => operator.sweep(ENDED_FOR)),
  wide('server', 'table rewritten', [0, 0], ({ operator }) => operator.rewrite()),
  rights('changes forbidden', 'UPDATE'),
  rights('new rows forbidden', 'INSERT'),
  rights('table forbidden', 'SELECT, INSERT, UPDATE, DELETE'),
  // What it has committed stays, but for what need not be.
  wide('restart', 'server killed and restarted', [0, 2_000], async ({ server }, pause) => {
    await server.kill();
    await pause();
    await server.restart();
  }),
  wide('loss', 'all rows deleted', [0, 0], ({ operator }) => operator.sweep(0)),
  wide('loss', 'row deleted', [0, 0], ({ operator }, _pause, { extent }) => operator.deleteRow(keyAt(extent))),
];

type Act = (stage: DatabaseStage, pause: () => Promise<void>, strike: Strike) => Promise<void>;

function wide(group: Fault['group'], name: string, duration: Fault['duration'], act: Act): Fault {
  const strike = (scene: Scene, one: Strike): Promise<void> => act(stageOf(DatabaseStage, scene), () => scene.pause(one.duration), one);
  return { name, group, isWide: true, duration, strike };
}

function rights(name: string, which: string): Fault {
  return wide('rights', name, [200, 3_000], async ({ operator }, pause) => {
    await operator.forbid(which);
    await pause();
    await operator.allow(which);
  });
}
