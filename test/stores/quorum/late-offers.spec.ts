import type { LeaseDriver } from 'nestjs-distributed-lock/core';
import { quorumStore } from 'nestjs-distributed-lock/quorum';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { eventually } from '../../support/eventually.js';
import { pause } from '../../support/time.js';
import { useQuorum } from './setting.js';

const setting = useQuorum(3);
const OWNER = 'waiter';
let key: string;
const request = { owner: OWNER, ttl: 20_000, tokens: 1, queue: true };

beforeEach(() => {
  key = setting.newKey();
});

/** What a server says that offers the key to the owner: this message is late. */
async function tellOffer(): Promise<void> {
  for (const server of setting.servers) {
    const client = server.client();
    const inboxes = (await client.pubsub('CHANNELS', '*inbox*')) as string[];
    for (const inbox of inboxes) await client.publish(inbox, `${OWNER}\n${key}`);
    client.disconnect();
  }
  // They have nothing to answer.
  await pause(200);
}

async function opened(mutex: LeaseDriver): Promise<() => void> {
  await mutex.wakeUps!.open(() => undefined);
  return mutex.wakeUps!.listen(OWNER, () => undefined);
}

it('an offer that is told late takes no vote from an owner that gave up a split vote before', async () => {
  const store = quorumStore(setting.servers.map(setting.store), { quarantine: 0 });
  setting.finally(() => store.close());
  const stop = await opened(store.mutex);
  const others = setting.servers.slice(0, 2).map((server, index) => ({ store: setting.store(server), owner: `other ${index}` }));
  for (const other of others) {
    setting.finally(() => other.store.close());
    await other.store.mutex.acquire({ ...request, key, owner: other.owner });
  }
  // Each has a vote, until the others have gone.
  const granting = store.mutex.acquire({ ...request, key });
  await eventually(() => ((store.mutex as unknown as { election: { splitVotes: number } }).election.splitVotes ?? 0) > 0);
  for (const other of others) await other.store.mutex.release({ key, owner: other.owner, keepFor: 0 });
  const reply = await granting;
  if (!reply.granted) await eventually(async () => (await store.mutex.acquire({ ...request, key })).granted);
  stop();
  // The ballot may have met one of the others still: then there are two votes.
  const votes = await setting.values(key);
  expect(votes.filter((owner) => owner === OWNER).length).toBeGreaterThan(1);
  await tellOffer();
  const left = await setting.values(key);
  expect(left.filter((_, index) => votes[index] === OWNER)).not.toContain(null);
  expect(await store.mutex.release({ key, owner: OWNER, keepFor: 0 })).toBe('released');
});

it('an offer that is told late takes no vote at a member whose answer is not there yet', async () => {
  const proxies = await setting.proxies();
  const stores = proxies.map(({ connection }) => redisStore({ options: connection, requestTimeout: 10_000 }));
  const store = quorumStore(stores, { quarantine: 0 });
  setting.finally(() => store.close());
  const stop = await opened(store.mutex);
  await store.mutex.acquire({ ...request, owner: 'warm-up', key: setting.newKey() });
  proxies[2]!.delay(2_000, 0, 'replies');
  expect((await store.mutex.acquire({ ...request, key })).granted).toBe(true);
  stop();
  await eventually(async () => expect(await setting.values(key)).toEqual([OWNER, OWNER, OWNER]));
  // The offer overtakes the answer, which is on its way.
  proxies[2]!.delay(0, 0, 'replies');
  await tellOffer();
  // Until the answer is there the member is asked nothing else.
  await pause(2_500);
  expect(await setting.values(key)).toEqual([OWNER, OWNER, OWNER]);
  expect(await store.mutex.release({ key, owner: OWNER, keepFor: 0 })).toBe('released');
  await eventually(async () => expect(await setting.values(key)).toEqual([null, null, null]));
});
