import type { WakeUps } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { Member } from '../../../lib/stores/quorum/quorum.member.js';
import { turnOf } from '../../../lib/stores/quorum/quorum.turns.js';
import { QuorumWakeUps } from '../../../lib/stores/quorum/quorum.wakeups.js';

const tenancy = { key: 'key', owner: 'owner' };

it.each([
  ['for its key', tenancy],
  ['for its turn', turnOf(tenancy)],
])(
  'listens for an owner until a member has answered the last request %s: without it, the member does not find its place',
  async (_, asked) => {
    const stopped: string[] = [];
    const inbox = { isOpen: true, listen: (owner: string) => () => void stopped.push(owner) } as unknown as WakeUps;
    const member = new Member(memoryStore(), 0, 0);
    let answer!: () => void;
    void member.inOrder(asked, () => new Promise<void>((resolve) => (answer = resolve)));
    const stop = new QuorumWakeUps([member], [inbox]).listen(tenancy.owner, () => undefined);
    stop();
    await new Promise(setImmediate);
    expect(stopped).toEqual([]);
    answer();
    await new Promise(setImmediate);
    expect(stopped.sort()).toEqual([tenancy.owner, turnOf(tenancy).owner]);
  },
);
