// CommonJS, in both builds: an ES module can load something at once, and only when it is needed, by nothing else.

/** @type {typeof import('./clients.cjs').ioredis} */
exports.ioredis = (missing) => {
  try {
    return require('ioredis');
  } catch (cause) {
    if (cause.code === 'MODULE_NOT_FOUND') return missing(cause);
    throw cause;
  }
};

exports.nodeRedisAdapter = () => require('./node-redis/node-redis.adapter');
