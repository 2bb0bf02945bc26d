import type { Random } from '../chaos/random.js';
import { EMPTIED, RESTORED, type Group } from '../chaos/faults/fault.js';
import type { Host } from './host.js';
import type { Server } from './inside.js';
import type { Link, Weather } from './network.js';

export interface AppPlace {
  readonly host: Host;
  readonly links: readonly Link[];
  /** The connection to a server breaks. */
  cut(server: number): void;
  kill(): void;
}

export interface ServerPlace {
  readonly host: Host;
  readonly server: Server;
  isRefusing: boolean;
}

/** What a fault strikes. */
export interface Target {
  readonly app: AppPlace;
  readonly apps: readonly AppPlace[];
  readonly server: ServerPlace;
  /** Its number. */
  readonly index: number;
  readonly random: Random;
}

export interface SimulatedFault {
  readonly name: string;
  readonly group: Group;
  /** It hits a server: one at a time. */
  readonly isWide?: boolean;
  /** Only where a server may come back empty; and milliseconds before and after it without another fault of a server. */
  readonly calm?: number;
  /** The app does nothing meanwhile. */
  readonly isStandstill?: boolean;
  /** Milliseconds: shortest and longest. */
  readonly lasts: readonly [number, number];
  /** Strikes. @returns what ends it. */
  strike(target: Target): () => void;
}

/** Milliseconds for which a server that has come back empty does not vote: longer than all leases. */
export const QUARANTINE = 6_000;

const none = (): void => undefined;

function fault(group: Group, name: string, lasts: SimulatedFault['lasts'], strike: SimulatedFault['strike']): SimulatedFault {
  return { group, name, lasts, strike };
}

const wide: typeof fault = (...args) => ({ ...fault(...args), isWide: true });

function weather(name: string, change: (random: Random) => Partial<Weather>, cuts = false): SimulatedFault {
  return fault('net', name, [200, 2_500], ({ app, index, random }) => {
    const end = app.links[index]!.spoil(change(random));
    if (cuts) app.cut(index);
    return () => {
      end();
      if (cuts) app.cut(index);
    };
  });
}

function stands(name: string, lasts: SimulatedFault['lasts'], sleeps = false): SimulatedFault {
  return {
    ...fault('process', name, lasts, ({ app: { host } }) => {
      host.stop(sleeps);
      return () => host.resume();
    }),
    isStandstill: true,
  };
}

export const FAULTS: readonly SimulatedFault[] = [
  fault('process', 'app killed', [0, 0], ({ app }) => {
    app.kill();
    return none;
  }),
  stands('app stopped briefly', [50, 400]),
  stands('app stopped for longer than its leases', [600, 6_000]),
  stands('machine asleep', [300, 8_000], true),
  fault('clock', 'wall clock jumps', [500, 3_000], ({ app: { host }, random }) => {
    const by = random.int(-100_000, 100_000);
    host.wallOffset += by;
    return () => void (host.wallOffset -= by);
  }),
  weather('slow', (random) => ({ delay: random.int(50, 3_000) })),
  weather('far away', (random) => ({ distance: random.int(10, 150) })),
  weather('losses', (random) => ({ loss: random.pick([0.05, 0.2, 0.6]) })),
  weather('arrives twice', () => ({ twice: 0.3, delay: 300 })),
  weather('requests lost', () => ({ isCutUp: true })),
  weather('replies lost', () => ({ isCutDown: true })),
  weather('cut', () => ({ isCutUp: true, isCutDown: true }), true),
  wide('server', 'server stopped', [100, 3_000], ({ server: { host } }) => {
    host.stop();
    return () => host.resume();
  }),
  wide('server', 'server refuses', [100, 2_500], ({ server }) => {
    server.isRefusing = true;
    return () => void (server.isRefusing = false);
  }),
  wide('restart', 'server restarted', [50, 1_500], ({ server: { host, server }, apps, index }) => {
    host.stop();
    for (const app of apps) app.cut(index);
    server.crash();
    return () => {
      host.drop();
      host.resume();
    };
  }),
  {
    ...wide('restart', EMPTIED, [50, 1_500], ({ server: { host, server }, apps, index }) => {
      host.stop();
      for (const app of apps) app.cut(index);
      return () => {
        server.empty();
        host.drop();
        host.resume();
      };
    }),
    calm: QUARANTINE,
  },
  wide('loss', RESTORED, [2_500, 5_000], ({ server: { host, server }, apps, index, random }) => {
    const restore = server.backup();
    const { world } = host;
    // For a second or longer, which each process notices that asks for the count, or for a moment: then it notices that the count has gone back.
    const leaving = world.at(world.now + random.pick([random.int(200, 1_200), 2_400]), () => {
      host.stop();
      for (const app of apps) app.cut(index);
    });
    return () => {
      leaving.isOff = true;
      if (!host.standsStill) return;
      server.crash();
      restore();
      host.drop();
      host.resume();
    };
  }),
  wide('clock-server', 'clock of the server jumps', [500, 3_000], ({ server: { server }, random }) => {
    const by = random.int(-30_000, 30_000);
    server.jump(by);
    return () => server.jump(-by);
  }),
];
