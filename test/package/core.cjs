const { Locks, LockTimeoutError } = require('nestjs-distributed-lock/core');
const scenario = require('./core-scenario.cjs');

const [name] = process.argv.slice(2);
const { [`${name}Store`]: make } = require(`nestjs-distributed-lock/${name}`);
void scenario({ Locks, LockTimeoutError, ...scenario.open(name, make) });
