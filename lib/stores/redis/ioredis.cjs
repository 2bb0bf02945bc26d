// CommonJS, in both builds: an ES module can load a package at once, and only when it is needed, by nothing else.

/** @type {typeof import('./ioredis.cjs').ioredis} */
exports.ioredis = (missing) => {
  try {
    return require('ioredis');
  } catch (cause) {
    return missing(cause);
  }
};
