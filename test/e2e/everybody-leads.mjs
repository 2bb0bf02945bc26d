// Loaded into the instances of the demo: an election that is broken, as each process has one of its own and wins it.
import { Locks } from '../../dist/esm/index.js';

const { leaderElection } = Locks.prototype;
Locks.prototype.leaderElection = function (name, options) {
  return leaderElection.call(this, `${name}-of-${process.pid}`, options);
};
