import { eventually } from '../../support/eventually.js';
import type { CallersArgs, CallersMessage, Tally } from './callers.child.js';
import type { Setting } from './setting.js';

/** Processes whose callers want these keys until they are stopped. The resource is the setting's own server, which no fault touches. */
export async function startCallers(setting: Setting, processes: number, args: Omit<CallersArgs, 'resource'>) {
  const resource = setting.server;
  const given: CallersArgs = { resource: resource.connection, ...args };
  const forked = Array.from({ length: processes }, () => setting.fork<CallersMessage>('callers.child.ts', given));
  const children = await Promise.all(forked);
  await Promise.all(children.map((child) => child.waitFor('ready')));
  for (const child of children) child.send({ type: 'go' });
  const client = resource.client();
  const keys = [...new Set(args.keys)];
  const sum = (numbers: number[]): number => numbers.reduce((all, one) => all + one, 0);
  const servedFor = async (key: string): Promise<number> => Number(await client.hget(`counter:${key}`, 'value'));
  const served = async (): Promise<number> => sum(await Promise.all(keys.map(servedFor)));
  return {
    /** How many bodies wrote so far. */
    served,
    /** Resolves when so many more bodies have written. */
    async goOn(count: number, key?: string): Promise<void> {
      const counted = key === undefined ? served : () => servedFor(key);
      const reached = (await counted()) + count;
      await eventually(async () => (await counted()) >= reached);
    },
    /** Ends the calls. What the resource counted is what it took (G2, with the token checked). */
    async stop(): Promise<Tally[]> {
      for (const child of children) child.send({ type: 'stop' });
      const tallies = await Promise.all(children.map((child) => child.waitFor('done')));
      const value = await served();
      client.disconnect();
      expect(value).toBe(sum(tallies.map(({ written }) => written)));
      return tallies;
    },
  };
}
