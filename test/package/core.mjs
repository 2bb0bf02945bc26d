import { Locks, LockTimeoutError } from 'nestjs-distributed-lock/core';
import scenario, { open } from './core-scenario.cjs';

const [name] = process.argv.slice(2);
const { [`${name}Store`]: make } = await import(`nestjs-distributed-lock/${name}`);
await scenario({ Locks, LockTimeoutError, ...open(name, make) });
