export { casTableContract, type CasTableContractOptions } from './store/cas-table.contract.js';
export { recordTableContract, type RecordTableContractOptions, type TableContractOptions } from './store/record-table.contract.js';
export type { Expect, Matchers, TestRunner } from './store/runner.js';
