// contestants/ is a package of its own (with its own Nest, for murlock), so it cannot see the library by its name. From here it can be seen.
export { Locks } from 'nestjs-distributed-lock/core';
export { redisStore } from 'nestjs-distributed-lock/redis';
