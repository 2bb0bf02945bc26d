/** Where code under test waits until the test lets it go on. */
export class Gate {
  /** How many have come to it. */
  arrived = 0;
  private isOpen = false;
  private waiting: (() => void)[] = [];

  async pass(): Promise<void> {
    this.arrived++;
    if (!this.isOpen) await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  /** Lets one of those that wait go on. */
  admit(index: number): void {
    for (const go of this.waiting.splice(index, 1)) go();
  }

  open(): void {
    this.isOpen = true;
    for (const go of this.waiting.splice(0)) go();
  }
}

/** One that is opened once: who waits for `passed` goes on then. */
export function gate() {
  let open!: () => void;
  const passed = new Promise<void>((resolve) => (open = resolve));
  return { passed, open };
}
