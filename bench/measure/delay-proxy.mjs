// A slower network, in a process of its own: each request arrives `delay` ms later, each reply at once.
//
//   node delay-proxy.mjs <port of the server> <delay>        (forked; sends its own port)
import { connect, createServer } from 'node:net';

const [, , target, delay] = process.argv.map(Number);

function delayed(from, to) {
  const waiting = [];
  let timer;
  const flush = () => {
    timer = undefined;
    const due = performance.now() - delay;
    while (waiting.length > 0 && waiting[0].at <= due) to.write(waiting.shift().bytes);
    if (waiting.length > 0) timer = setTimeout(flush, Math.max(1, Math.round(waiting[0].at - due)));
  };
  from.on('data', (bytes) => {
    waiting.push({ bytes, at: performance.now() });
    timer ??= setTimeout(flush, delay);
  });
}

const server = createServer({ noDelay: true }, (client) => {
  const upstream = connect({ port: target, host: '127.0.0.1', noDelay: true });
  delayed(client, upstream);
  upstream.pipe(client);
  for (const [one, other] of [
    [client, upstream],
    [upstream, client],
  ]) {
    one.on('error', () => other.destroy());
    one.on('close', () => other.destroy());
  }
});
server.listen(0, '127.0.0.1', () => process.send(server.address().port));
process.on('disconnect', () => process.exit());
