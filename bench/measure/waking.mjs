// One process holds, another waits: how long from the release until the other is in.
import { clock } from './clock.mjs';
import { Sections } from './oracle.mjs';

const TTL = 10_000;

let open;
let released;

/** Returns once the key is held. */
export async function take(contestant) {
  const sections = new Sections();
  await new Promise((resolve, reject) => {
    released = contestant
      .locked('handed', TTL, () =>
        sections.run(() => {
          resolve();
          return new Promise((end) => (open = end));
        }),
      )
      .then(() => sections.times);
    released.catch(reject);
  });
  return {};
}

export async function give() {
  const at = clock();
  open();
  return { at, times: await released };
}

export async function waitFor(contestant) {
  const sections = new Sections();
  let at;
  await contestant.locked('handed', TTL, () => {
    at = clock();
    return sections.run();
  });
  return { at, times: sections.times };
}
