/** A class with two methods, locked so. */
export function shopWith(first: MethodDecorator, second: MethodDecorator) {
  class Shop {
    @first
    async one(_sku: string) {}
    @second
    async two(_sku: string) {}
  }
  return Shop;
}
