export interface Mutant {
  readonly area: string;
  readonly line: number;
  readonly defect: string;
  readonly spec: string;
}
export function readTables(folder: string): Mutant[];
/** @param table the text of one file. */
export function mutantsOf(area: string, table: string): Mutant[];
export function filesOf(mutant: Mutant, read: (file: string) => string): Map<string, string>;
