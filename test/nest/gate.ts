/** Closed until a test opens it. */
export class Gate {
  /** How many have come to it. */
  arrived = 0;
  open!: () => void;
  private readonly opened = new Promise<void>((resolve) => (this.open = resolve));

  async pass(): Promise<void> {
    this.arrived++;
    await this.opened;
  }
}
