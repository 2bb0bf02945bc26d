import { connect } from './client.mjs';

export function open({ port }) {
  const client = connect(port);
  const locked = async (_key, _ttl, work) => {
    await client.ping();
    return work();
  };
  return {
    version: '',
    keyOf: (key) => key,
    locked,
    reading: locked,
    writing: locked,
    permitted: (key, _permits, ttl, work) => locked(key, ttl, work),
    async hold() {},
    close: () => client.disconnect(),
  };
}
