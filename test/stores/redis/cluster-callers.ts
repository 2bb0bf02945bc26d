import type { CallersArgs, CallersMessage, Tally } from './cluster-callers.child.js';
import type { ClusterSetting } from './cluster.setting.js';

/** Processes whose callers want these keys until they are stopped. The resource is the setting's own server, which no fault touches. */
export async function startCallers(on: ClusterSetting, processes: number, args: Pick<CallersArgs, 'keys' | 'callers' | 'options'>) {
  const resource = on.setting.server;
  const given: CallersArgs = { where: on.where, resource: resource.connection, ...args };
  const children = await Promise.all(
    Array.from({ length: processes }, () => on.setting.fork<CallersMessage>('cluster-callers.child.ts', given)),
  );
  await Promise.all(children.map((child) => child.waitFor('ready', { within: 60_000 })));
  for (const child of children) child.send({ type: 'go' });
  const client = resource.client();
  const keys = [...new Set(args.keys)];
  const sum = (numbers: number[]): number => numbers.reduce((all, one) => all + one, 0);
  const servedFor = async (key: string): Promise<number> => Number(await client.hget(`counter:${key}`, 'value'));
  return {
    /** Ends the calls. What the resource counted is what it took (G2, with the token checked). */
    async stop(): Promise<Tally[]> {
      for (const child of children) child.send({ type: 'stop' });
      const tallies = await Promise.all(children.map((child) => child.waitFor('done', { within: 60_000 })));
      const values = await Promise.all(keys.map(servedFor));
      client.disconnect();
      expect(sum(values)).toBe(sum(tallies.map(({ written }) => written)));
      return tallies;
    },
    /** How many bodies wrote so far. */
    served: async (): Promise<number> => sum(await Promise.all(keys.map(servedFor))),
    servedFor,
  };
}
