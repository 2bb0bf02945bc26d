const { stderr } = process;

/** Says on stderr how far it is, in place on a terminal, else now and then. Returns how to stop. */
export function showProgress(title, total, done) {
  const say = (end) => {
    const percent = Math.floor((100 * done()) / total);
    const line = `  ${title.padEnd(5)} ${String(percent).padStart(3)} % of ${total} requests`;
    stderr.write(stderr.isTTY ? `\r${line}${end}` : `${line}\n`);
  };
  say('');
  const timer = setInterval(say, stderr.isTTY ? 200 : 5_000, '');
  return () => {
    clearInterval(timer);
    say('\n');
  };
}
