import type { Locks } from 'nestjs-distributed-lock/core';

const opened: Locks[] = [];
afterEach(() => Promise.all(opened.splice(0).map((locks) => locks.close())));

/** Locks that are closed when the test ends. */
export const closedAfter = (locks: Locks): Locks => (opened.push(locks), locks);
