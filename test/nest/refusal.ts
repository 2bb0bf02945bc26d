import { LockConfigError } from 'nestjs-distributed-lock';

/** The message by which a mistake in the program is refused. */
export function refusalOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(LockConfigError);
    return (error as LockConfigError).message;
  }
  throw new Error('was not refused');
}

/** The promise rejects with the message by which a mistake in the program is refused. */
export const expectRefused = (call: unknown, message: RegExp | string) =>
  expect(call).rejects.toMatchObject({ name: 'LockConfigError', message: expect.stringMatching(message) });
