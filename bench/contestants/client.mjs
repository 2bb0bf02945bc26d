// One ioredis in one version for all who take a client, with its defaults.
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { Redis } from 'ioredis';
import { countRequests } from './requests.mjs';

const require = createRequire(import.meta.url);

countRequests(Redis);

export const connect = (port) => new Redis(port, '127.0.0.1').on('error', () => undefined);

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export const sha1 = (text) => createHash('sha1').update(text).digest('hex');

/** The version that package.json pins. */
export const versionOf = (name) => require('./package.json').dependencies[name];
