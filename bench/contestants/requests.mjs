// What a library asks of Redis, counted where it is sent: INFO commandstats also counts what scripts do inside the server.

export const requests = { count: 0 };

/** @param {new (...args: any[]) => unknown} type a client, whose `method` sends one command. */
export function countRequests(type, method = 'sendCommand') {
  const send = type.prototype[method];
  type.prototype[method] = function (...args) {
    requests.count++;
    return send.apply(this, args);
  };
}
