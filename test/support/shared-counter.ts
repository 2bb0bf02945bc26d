/** A counter that nothing guards: who increments it while another does so loses an update. It also notices who was inside together. */
export class SharedCounter {
  value = 0;
  overlaps = 0;
  private inside = 0;

  async increment(): Promise<number> {
    if (++this.inside > 1) this.overlaps++;
    const seen = this.value;
    await new Promise((resolve) => setTimeout(resolve, 1));
    this.inside--;
    return (this.value = seen + 1);
  }
}
