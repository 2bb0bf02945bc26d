/** What is used of a `Command` of ioredis. */
export interface SentCommand {
  name: string;
  args: unknown[];
}

/**
 * The client, or a pipeline of one, for scripts; it reports the commands that it makes. ioredis keeps what was not answered, and sends it once more over
 * the next connection, or to another node: long after the caller was rejected, who may have asked for the opposite since.
 */
export function reporting<T extends object>(sender: T, report: (command: SentCommand) => void): T {
  const ioredis = sender as T & { sendCommand?(...args: unknown[]): unknown };
  if (!ioredis.sendCommand) return sender;
  const sendCommand = (command: SentCommand, ...others: unknown[]): unknown => {
    report(command);
    return ioredis.sendCommand!(command, ...others);
  };
  // What is a pipeline ioredis does not gather into one with what others send.
  return Object.create(sender, { sendCommand: { value: sendCommand }, isPipeline: { value: true } }) as T;
}

/** From now on it does nothing, whenever it is sent. */
export function recall(command: SentCommand): void {
  command.name = 'ping';
  command.args = [];
}
