/**
 * Cuts a list into parts, each with as many elements as fit, and with one at least.
 *
 * @param most what a part may have of each measure.
 * @param sizesOf what an element has of each.
 */
export function inParts<T>(list: readonly T[], most: readonly number[], sizesOf: (element: T) => readonly number[]): T[][] {
  const parts: T[][] = [];
  let sizes: readonly number[] = [];
  for (const element of list) {
    const own = sizesOf(element);
    const together = own.map((size, index) => size + (sizes[index] ?? Infinity));
    const fits = together.every((size, index) => size <= most[index]!);
    if (!fits) parts.push([]);
    parts.at(-1)!.push(element);
    sizes = fits ? together : own;
  }
  return parts;
}
