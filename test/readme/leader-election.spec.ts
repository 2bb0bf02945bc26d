// What docs/leader-election.md says, on a real server.
import { eventually } from '../support/eventually.js';
import { Relay, status, stepDown, watch, type Channel } from './leader-election.js';
import { useRedisOfEnv } from './stand-ins/redis-of-env.js';

describe('the relay of docs/leader-election.md', () => {
  const relays: Relay[] = [];
  afterEach(() => Promise.all(relays.splice(0).map(({ locks }) => locks.close())));
  useRedisOfEnv();

  const sent: [string, number][] = [];
  const channel: Channel = { send: async (message, token) => void sent.push([message, token]) };
  const start = (outbox: string[], log: string[]) => {
    const relay = new Relay(channel, outbox);
    relays.push(relay);
    watch(relay, (line) => log.push(line));
    return { relay, running: relay.run() };
  };

  it('is run by one instance, and by the next one as soon as that one resigns', async () => {
    const [outbox, log] = [['first'], [] as string[]];
    const a = start(outbox, log);
    await eventually(() => sent.length === 1);
    const b = start(outbox, log);
    expect(await status(a.relay)).toBe('leader');
    expect(await status(b.relay)).toMatch(/^standby of \S+ since \d{4}-\d\d-\d\dT/);
    await stepDown(a.relay);
    await a.running;
    outbox.push('second');
    await eventually(() => sent.length === 2);
    expect(sent.map(([message]) => message)).toEqual(['first', 'second']);
    const [first, second] = sent.map(([, token]) => token);
    expect(second).toBeGreaterThan(first!);
    expect(log).toEqual([`leads with token ${first}`, 'is not the leader any more', `leads with token ${second}`]);
    await b.relay.election.resign();
    await b.running;
    expect(await status(b.relay)).toBe('nobody leads');
  });
});
