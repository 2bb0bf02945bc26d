import { connect } from './client.mjs';

export function open({ port }) {
  const client = connect(port);
  return {
    version: '',
    keyOf: (key) => key,
    async locked(key, ttl, work) {
      await client.ping();
      return work();
    },
    async hold() {
      return () => undefined;
    },
    close: () => client.disconnect(),
  };
}
