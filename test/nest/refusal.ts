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
