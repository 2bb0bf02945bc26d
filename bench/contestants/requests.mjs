// What a library asks of Redis, counted where it is sent: INFO commandstats also counts what scripts call inside the server.

/** How many of each command were sent. */
export const sent = {};

/** @param {new (...args: any[]) => unknown} type a client, whose `method` sends one command. */
export function countRequests(type, method = 'sendCommand') {
  const send = type.prototype[method];
  type.prototype[method] = function (command, ...args) {
    const name = (command.name ?? command[0]).toLowerCase();
    sent[name] = (sent[name] ?? 0) + 1;
    return send.call(this, command, ...args);
  };
}
