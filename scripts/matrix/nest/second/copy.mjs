// Stands in a folder with an installation of its own.
import * as lock from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { redisStore } from 'nestjs-distributed-lock/redis';

export { lock, memoryStore, redisStore };
